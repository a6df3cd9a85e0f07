// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Each fault that the verifier knows, with the location that it must name.
#include "plan/verify/verify.hpp"
#include "plan/algorithms/algorithms.hpp"
#include "plan/compose/composition.hpp"
#include "plan/passes/passes.hpp"
#include "plan/serialization/text.hpp"

#include <sucl/error.hpp>

#include <gtest/gtest.h>

namespace sucl::plan {
namespace {

// A plan of two ranks (unless said otherwise) with these channels.
verdict judge(const std::string& rank0, const std::string& rank1,
              const std::string& collective = "allreduce ranks 2 element 4 counts 2") {
  const auto rank = [](int r, const std::string& body) {
    return "rank " + std::to_string(r) + " scratch 16\nchannel 0\n" + body;
  };
  return verify(from_text("sucl-plan 1\ncollective " + collective +
                          "\nalgorithm by hand\nlevel 0 all via any\n" + rank(0, rank0) +
                          rank(1, rank1)));
}

std::string exchange_with(int peer) {
  const std::string p = std::to_string(peer);
  return "copy recv+0 send+0 8\nsend " + p + " recv+0 8\nreceive " + p + " scratch+0 8\nfence\n" +
         "reduce recv+0 scratch+0 8\n";
}

void expect(const verdict& v, fault what, int rank, std::int64_t instruction, space where,
            std::uint64_t offset, std::uint64_t bytes) {
  EXPECT_EQ(name(v.what), std::string(name(what))) << v.message;
  EXPECT_EQ(v.rank, rank) << v.message;
  EXPECT_EQ(v.instruction, instruction) << v.message;
  EXPECT_EQ(v.where, where) << v.message;
  EXPECT_EQ(v.offset, offset) << v.message;
  EXPECT_EQ(v.bytes, bytes) << v.message;
}

TEST(plan_verify, passes_a_right_plan) {
  const verdict v = judge(exchange_with(1), exchange_with(0));
  EXPECT_TRUE(v) << v.message;
  EXPECT_TRUE(v.identical);
}

TEST(plan_verify, finds_unset_reads) {
  expect(judge("copy recv+0 scratch+4 8\n", exchange_with(0)), fault::unset_read, 0, 0,
         space::scratch, 4, 8);
}

TEST(plan_verify, finds_what_is_out_of_bounds) {
  expect(judge("copy recv+4 send+0 8\n", exchange_with(0)), fault::out_of_bounds, 0, 0, space::recv,
         4, 8);
}

TEST(plan_verify, finds_writes_to_the_input) {
  expect(judge("copy send+0 recv+0 8\n", exchange_with(0)), fault::read_only, 0, 0, space::send, 0,
         8);
}

TEST(plan_verify, finds_races_with_unfinished_transfers) {
  expect(judge("copy recv+0 send+0 8\nsend 1 recv+0 8\nreceive 1 scratch+0 8\n"
               "copy recv+4 send+0 4\nfence\nreduce recv+0 scratch+0 8\n",
               exchange_with(0)),
         fault::race, 0, 3, space::recv, 4, 4);
}

TEST(plan_verify, finds_transfers_that_nothing_finishes) {
  expect(judge("copy recv+0 send+0 8\nreceive 1 scratch+0 8\nfence\nreduce recv+0 scratch+0 8\n"
               "send 1 send+0 8\n",
               exchange_with(0)),
         fault::unfinished, 0, 4, space::send, 0, 8);
}

TEST(plan_verify, finds_lengths_that_differ) {
  expect(judge("copy recv+0 send+0 8\nsend 1 recv+0 4\nreceive 1 scratch+0 8\nfence\n"
               "reduce recv+0 scratch+0 8\n",
               exchange_with(0)),
         fault::length, 1, 2, space::scratch, 0, 8);
}

TEST(plan_verify, finds_messages_that_no_rank_takes) {
  expect(judge("copy recv+0 send+0 8\nsend 1 recv+0 8\nfence\n", "copy recv+0 send+0 8\n"),
         fault::unmatched, 0, 1, space::recv, 0, 8);
}

TEST(plan_verify, finds_deadlock) {
  const auto first_receives = [](int peer) {
    const std::string p = std::to_string(peer);
    return "receive " + p + " scratch+0 8\nfence\nsend " + p + " send+0 8\nfence\n";
  };
  expect(judge(first_receives(1), first_receives(0)), fault::deadlock, 0, 0, space::scratch, 0, 8);
}

TEST(plan_verify, counts_on_no_buffering) {
  const auto first_sends = [](int peer) {
    const std::string p = std::to_string(peer);
    return "copy recv+0 send+0 8\nsend " + p + " send+0 8\nfence\nreceive " + p +
           " scratch+0 8\nfence\nreduce recv+0 scratch+0 8\n";
  };
  EXPECT_EQ(judge(first_sends(1), first_sends(0)).what, fault::deadlock);
}

TEST(plan_verify, finds_contributions_that_count_twice) {
  expect(judge("copy recv+0 send+0 8\nsend 1 recv+0 8\nreceive 1 scratch+0 8\nfence\n"
               "reduce recv+0 scratch+0 8\nreduce recv+4 send+4 4\n",
               exchange_with(0)),
         fault::twice, 0, 5, space::recv, 4, 4);
}

TEST(plan_verify, finds_wrong_results) {
  expect(judge("copy recv+0 send+0 8\nsend 1 recv+0 8\nreceive 1 scratch+0 8\nfence\n"
               "reduce recv+0 scratch+0 4\n",
               exchange_with(0)),
         fault::result, 0, -1, space::recv, 4, 4);
}

TEST(plan_verify, finds_results_at_the_wrong_address) {
  expect(judge("send 1 send+0 4\nfence\n", "receive 0 recv+0 4\nfence\n",
               "scatter ranks 2 root 0 element 4 counts 1"),
         fault::result, 0, -1, space::recv, 0, 4);
}

TEST(plan_verify, finds_partial_elements) {
  expect(judge("copy recv+0 send+0 8\nreduce recv+0 scratch+0 6\n", exchange_with(0)),
         fault::malformed, 0, 1, space::recv, 0, 6);
}

TEST(plan_verify, finds_what_is_out_of_order) {
  problem p;
  p.ranks = 4;
  p.order = ordering::ranked;
  p.counts = {4};
  EXPECT_TRUE(verify(build(p, recipe_from_text("one_shot"))));
  problem any = p;
  any.order = ordering::any;
  schedule s = build(any, recipe_from_text("two_shot"));
  s.what.order = ordering::ranked;
  EXPECT_EQ(verify(s).what, fault::order);
}

// Three ranks whose two others' inputs come into scratch; each combines as it is told.
verdict judge_folds(const std::string& rank0, const std::string& rank1, const std::string& rank2,
                    const std::string& collective, fold_rules rules) {
  const auto rank = [](int r, const std::string& folds) {
    const int a = (r + 1) % 3, b = (r + 2) % 3;  // their inputs are at scratch 0 and 8
    const std::string to_a = std::to_string(a), to_b = std::to_string(b);
    return "rank " + std::to_string(r) + " scratch 32\nchannel 0\nsend " + to_a +
           " send+0 8\nsend " + to_b + " send+0 8\nreceive " + to_a + " scratch+0 8\nreceive " +
           to_b + " scratch+8 8\nfence\n" + folds;
  };
  const schedule s = from_text("sucl-plan 1\ncollective " + collective +
                               "\nalgorithm by hand\nlevel 0 all via any\n" + rank(0, rank0) +
                               rank(1, rank1) + rank(2, rank2));
  return verify(s, entry::apart, rules);
}

const char* const three = "allreduce ranks 3 element 4 counts 2";
const std::string own_first =
    "copy recv+0 send+0 8\nreduce recv+0 scratch+0 8\nreduce recv+0 scratch+8 8\n";
const std::string own_second =
    "copy recv+0 scratch+8 8\nreduce recv+0 send+0 8\nreduce recv+0 scratch+0 8\n";
const std::string own_last =
    "copy recv+0 scratch+0 8\nreduce recv+0 scratch+8 8\nreduce recv+0 send+0 8\n";

TEST(plan_verify, finds_ranks_that_associate_differently) {
  const fold_rules usual = fold_rules::of(4);
  // Each begins with its own: (0 + 1) + 2, (1 + 2) + 0, (2 + 0) + 1.
  const verdict v = judge_folds(own_first, own_first, own_first, three, usual);
  expect(v, fault::differs, 1, -1, space::recv, 0, 4);
  EXPECT_NE(v.message.find("element 0 is"), std::string::npos) << v.message;
  EXPECT_NE(v.message.find("(1 + 2)"), std::string::npos) << v.message;
  EXPECT_NE(v.message.find("on rank 1"), std::string::npos) << v.message;
  EXPECT_NE(v.message.find("(0 + 1)"), std::string::npos) << v.message;
  EXPECT_NE(v.message.find("on rank 0"), std::string::npos) << v.message;
  // All in order of rank.
  const verdict same = judge_folds(own_first, own_second, own_last, three, usual);
  EXPECT_TRUE(same.identical) << same.message;
  // Only the second element differs.
  const std::string partly =
      "copy recv+0 scratch+0 4\nreduce recv+0 scratch+8 4\nreduce recv+0 send+0 4\n"
      "copy recv+4 send+4 4\nreduce recv+4 scratch+4 4\nreduce recv+4 scratch+12 4\n";
  expect(judge_folds(own_first, own_second, partly, three, usual), fault::differs, 2, -1,
         space::recv, 4, 4);
  // Where the op is associative a plan may say that it does not matter.
  const verdict free = judge_folds(own_first, own_first, own_first,
                                   "allreduce ranks 3 element 4 free counts 2", usual);
  EXPECT_TRUE(free) << free.message;
  EXPECT_FALSE(free.identical);
}

// That two operands may be swapped is an assumption, and can be taken back.
TEST(plan_verify, exchanges_operands_only_where_it_may) {
  fold_rules strict = fold_rules::of(4);
  strict.commutative = false;
  const std::string second_swapped =
      "copy recv+0 send+0 8\nreduce recv+0 scratch+8 8\nreduce recv+0 scratch+0 8\n";
  EXPECT_TRUE(judge_folds(own_first, second_swapped, own_last, three, fold_rules::of(4)));
  EXPECT_TRUE(judge_folds(own_first, own_second, own_last, three, strict));
  const verdict v = judge_folds(own_first, second_swapped, own_last, three, strict);
  expect(v, fault::differs, 1, -1, space::recv, 0, 4);
}

// Narrow floats are rounded at the end of a fold, so that two folds are not one.
TEST(plan_verify, tells_one_fold_from_two) {
  const std::string in_two =
      "copy recv+0 scratch+0 8\nreduce recv+0 scratch+8 8\ncopy scratch+16 recv+0 8\n"
      "reduce recv+0 send+0 8\n";
  const char* const narrow = "allreduce ranks 3 element 2 counts 4";
  EXPECT_TRUE(judge_folds(own_first, own_second, in_two, three, fold_rules::of(4)));
  EXPECT_TRUE(judge_folds(own_first, own_second, own_last, narrow, fold_rules::of(2)));
  const verdict v = judge_folds(own_first, own_second, in_two, narrow, fold_rules::of(2));
  expect(v, fault::differs, 2, -1, space::recv, 0, 2);
  EXPECT_NE(v.message.find("2 + (0 + 1) on rank 2"), std::string::npos) << v.message;
  EXPECT_NE(v.message.find("0 + 1 + 2 on rank 0"), std::string::npos) << v.message;
}

TEST(plan_verify, finds_what_is_not_in_the_fixed_order) {
  const char* const fixed = "allreduce ranks 3 element 4 fixed counts 2";
  EXPECT_TRUE(judge_folds(own_first, own_second, own_last, fixed, fold_rules::of(4)));
  // All ranks alike, but 0 + (1 + 2).
  const std::string other[] = {
      "reduce scratch+0 scratch+8 8\ncopy recv+0 send+0 8\nreduce recv+0 scratch+0 8\n",
      "copy recv+0 send+0 8\nreduce recv+0 scratch+0 8\nreduce recv+0 scratch+8 8\n",
      "copy recv+0 send+0 8\nreduce recv+0 scratch+8 8\nreduce recv+0 scratch+0 8\n"};
  const verdict v = judge_folds(other[0], other[1], other[2], fixed, fold_rules::of(4));
  expect(v, fault::order, 0, -1, space::recv, 0, 4);
  EXPECT_NE(v.message.find("in the fixed order it is"), std::string::npos) << v.message;
}

// A composition gives the same element to several ranks at addresses of their own.
TEST(plan_verify, compares_what_compositions_give_to_several_ranks) {
  const auto sums = [](const std::vector<int>& early, int late) {
    auto c = composition::custom(4, 6, 6, 4);
    for (int r = 0; r < 4; ++r) c.take_scratch(r, 16);
    c.reduction({space::send, 0}, {space::recv, 8}, 16, {0, 1, 2}, 0);
    // Another rank gets the second to fourth element by way of a sum of two.
    c.reduction({space::send, 4}, {space::scratch, 0}, 12, early, early[0]);
    c.multicast({space::send, 4}, {space::scratch, 0}, 12, late, {late});
    c.fence();
    c.reduction({space::scratch, 0}, {space::recv, 0}, 12, {early[0], late}, late);
    return verify(lower(derive_outcome(c), "by hand"));
  };
  const verdict v = sums({2, 0}, 1);
  expect(v, fault::differs, 1, -1, space::recv, 0, 4);
  EXPECT_TRUE(sums({1, 0}, 2)) << "the same association";
  EXPECT_TRUE(sums({3, 0}, 1)) << "another sum";
}

// One-sided: rank 1 reads rank 0's input into its own output.
const char* const from_peer = "broadcast ranks 2 root 0 element 4 counts 2";

TEST(plan_verify, wants_a_peer_to_have_started) {
  expect(
      judge("wait 1 flag 0\n", "get 0 recv+0 peer.send+0 8\nfence\nsignal 0 flag 0\n", from_peer),
      fault::race, 1, 0, space::peer_send, 0, 8);
}

TEST(plan_verify, wants_a_peer_to_know_the_end) {
  expect(
      judge("signal 1 flag 0\n", "wait 0 flag 0\nget 0 recv+0 peer.send+0 8\nfence\n", from_peer),
      fault::race, 0, -1, space::send, 0, 8);
}

TEST(plan_verify, wants_a_fence_before_the_signal) {
  expect(judge("signal 1 flag 0\nwait 1 flag 0\n",
               "wait 0 flag 0\nget 0 recv+0 peer.send+0 8\nsignal 0 flag 0\nfence\n", from_peer),
         fault::race, 0, -1, space::send, 0, 8);
  EXPECT_TRUE(judge("signal 1 flag 0\nwait 1 flag 0\n",
                    "wait 0 flag 0\nget 0 recv+0 peer.send+0 8\nfence\nsignal 0 flag 0\n",
                    from_peer));
}

TEST(plan_verify, takes_messages_among_sharing_ranks_as_order) {
  const verdict v =
      judge("copy scratch+0 send+0 4\nsend 1 scratch+0 4\nreceive 1 scratch+4 4\nfence\n",
            "receive 0 scratch+0 4\nfence\nget 0 recv+0 peer.send+0 8\nfence\nsend 0 scratch+0 "
            "4\nfence\n",
            from_peer);
  EXPECT_TRUE(v) << v.message;
}

TEST(plan_verify, finds_signals_that_are_left_over) {
  EXPECT_EQ(judge(exchange_with(1) + "signal 1 flag 7\n", exchange_with(0)).what, fault::unmatched);
}

TEST(plan_verify, finds_races_between_channels) {
  const auto plan = [](const std::string& first, const std::string& second) {
    return verify(
        from_text("sucl-plan 1\ncollective allreduce ranks 1 element 4 counts 2\n"
                  "algorithm x\nlevel 0 all via any\nrank 0 scratch 8\nchannel 0\n" +
                  first + "channel 1\n" + second));
  };
  EXPECT_TRUE(plan("copy recv+0 send+0 4\n", "copy recv+4 send+4 4\n"));
  EXPECT_EQ(plan("copy recv+0 send+0 8\n", "copy recv+4 send+4 4\n").what, fault::race);
  // A signal to oneself orders channels.
  EXPECT_TRUE(plan("copy scratch+0 send+0 8\nsignal 0 flag 1\n",
                   "wait 0 flag 1\ncopy recv+0 scratch+0 8\n"));
  EXPECT_EQ(
      plan("signal 0 flag 1\ncopy scratch+0 send+0 8\n", "wait 0 flag 1\ncopy recv+0 scratch+0 8\n")
          .what,
      fault::race);
}

TEST(plan_verify, does_not_depend_on_the_number_of_bytes) {
  problem p;
  p.ranks = 4;
  p.element_bytes = 8;
  p.counts = {std::uint64_t{1} << 50};
  EXPECT_TRUE(verify(build(p, recipe_from_text("ring"))));
}

// What says only that a rank is there may go where all know it; what says more may not.
TEST(plan_verify, proves_what_ranks_do_that_enter_together) {
  for (const char* name : {"mapped_one_shot", "mapped_two_shot", "one_shot", "two_shot"}) {
    problem p;
    p.ranks = 3;
    p.element_bytes = 8;
    p.counts = {30};
    const schedule whole = build(p, recipe_from_text(name));
    const schedule stripped = enter_together(whole);
    EXPECT_LT(instruction_count(stripped), instruction_count(whole)) << name;
    EXPECT_TRUE(verify(whole)) << name;
    EXPECT_TRUE(verify(stripped, entry::together)) << name << verify(stripped).message;
    EXPECT_EQ(verify(stripped).what, fault::race) << name;
    // What is left says that something was done, and may not go.
    std::size_t left = 0;
    schedule less = stripped;
    for (program& r : less.ranks)
      for (channel& c : r.channels)
        left += std::erase_if(
            c, [](const instruction& i) { return i.op == opcode::signal || i.op == opcode::wait; });
    EXPECT_GT(left, 0u) << name;
    EXPECT_FALSE(verify(less, entry::together)) << name;
  }
}

TEST(plan_verify, says_what_is_wrong_in_the_error) {
  problem p;
  p.ranks = 2;
  p.counts = {4};
  schedule s = build(p, recipe_from_text("ring"));
  EXPECT_NO_THROW(verify_or_fail(s));
  s.ranks[1].channels[0].pop_back();
  try {
    verify_or_fail(s);
    FAIL() << "a wrong plan passed";
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find("rank 1"), std::string::npos) << e.what();
  }
}

// The words of the error that a proof takes too much; empty if it does not.
std::string too_much(const schedule& s, proof_limits limits) {
  try {
    verify(s, limits);
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::out_of_memory) << e.what();
    EXPECT_NE(e.hint().find("--effort"), std::string::npos) << e.hint();
    return e.message();
  }
  return {};
}

TEST(plan_verify, counts_what_a_proof_costs) {
  problem p;
  p.ranks = 4;
  p.counts = {16};
  const schedule s = build(p, recipe_from_text("ring"));
  const std::uint64_t steps = verify(s).steps;
  EXPECT_GE(steps, instruction_count(s));
  EXPECT_EQ(too_much(s, {steps, proof_limits::none}), "");
  EXPECT_EQ(too_much(s, {steps - 1, proof_limits::none}),
            "the proof of the plan takes more than " + std::to_string(steps - 1) + " steps");
}

// Outcomes of all ranks together are the square of what the file has.
TEST(plan_verify, bounds_the_outcomes_of_many_ranks) {
  schedule s;
  s.what.kind = kind::alltoall;
  s.what.ranks = 200000;
  s.what.counts = {1};
  s.levels.push_back({"all", "any"});
  s.ranks.resize(200000);
  EXPECT_NE(too_much(s, {4000000000, proof_limits::none}), "");
}

// So are segments, where each of many instructions takes all that others have cut.
TEST(plan_verify, bounds_the_segments_that_are_read) {
  constexpr std::uint64_t n = 30000;
  schedule s;
  s.what.ranks = 1;
  s.what.counts = {n};
  s.levels.push_back({"all", "any"});
  s.ranks.push_back({n, {{}}});
  channel& code = s.ranks[0].channels[0];
  for (std::uint64_t i = 0; i < n; ++i)
    code.push_back({opcode::copy, space::scratch, space::send, 0, -1, i, i * 7919 % n, 1});
  for (std::uint64_t i = 0; i < n; ++i)
    code.push_back({opcode::copy, space::recv, space::scratch, 0, -1, 0, 0, n});
  EXPECT_NE(too_much(s, {10000000, proof_limits::none}), "");
}

// A clock of all ranks for each of them, where they are joined by naming each other's memory.
TEST(plan_verify, bounds_the_memory_of_clocks) {
  constexpr int n = 200000;
  schedule s;
  s.what.kind = kind::broadcast;
  s.what.ranks = n;
  s.what.counts = {1};
  s.levels.push_back({"all", "any"});
  s.ranks.resize(n);
  for (int r = 1; r < n; ++r)
    s.ranks[static_cast<std::size_t>(r)].channels = {
        {{opcode::copy, space::recv, r == 1 ? space::peer_send : space::peer_recv, 0, r - 1, 0, 0,
          1}}};
  EXPECT_NE(too_much(s, {proof_limits::none, 4000000000}).find("bytes of memory"),
            std::string::npos);
}

// Of one rank's input many offsets may be combined: they are compared, but not each with each.
TEST(plan_verify, finds_that_one_of_many_offsets_is_combined_twice) {
  constexpr std::uint64_t n = 200;
  const auto plan_of = [](std::uint64_t last) {
    schedule s;
    s.what.ranks = 1;
    s.what.counts = {n};
    s.levels.push_back({"all", "any"});
    s.ranks.push_back({1, {{{opcode::copy, space::scratch, space::send, 0, -1, 0, 0, 1}}}});
    for (std::uint64_t i = 1; i < n; ++i)
      s.ranks[0].channels[0].push_back(
          {opcode::reduce, space::scratch, space::send, 0, -1, 0, i + 1 < n ? i : last, 1});
    return s;
  };
  const verdict twice = verify(plan_of(n / 2));
  EXPECT_EQ(name(twice.what), std::string("twice")) << twice.message;
  EXPECT_EQ(twice.instruction, static_cast<std::int64_t>(n) - 1);
  EXPECT_NE(name(verify(plan_of(n - 1)).what), std::string("twice"));
}

}  // namespace
}  // namespace sucl::plan
