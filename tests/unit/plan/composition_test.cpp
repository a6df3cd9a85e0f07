// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Composition and each of its passes alone.
#include "plan/compose/composition.hpp"
#include "plan/algorithms/algorithms.hpp"
#include "plan/passes/passes.hpp"
#include "plan/serialization/text.hpp"
#include "plan/verify/verify.hpp"

#include <sucl/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sucl::plan {
namespace {

problem make(kind k, int ranks, std::uint64_t count, int root = 0) {
  problem p;
  p.kind = k;
  p.ranks = ranks;
  p.root = root;
  p.element_bytes = 4;
  p.counts = {count};
  return p;
}

address in(std::uint64_t offset) { return {space::send, offset}; }
address out(std::uint64_t offset) { return {space::recv, offset}; }

void expect_right(const composition& c) {
  const schedule s = lower(c, "test");
  const verdict v = verify(s);
  EXPECT_TRUE(v) << v.message << "\n" << to_text(c);
}

std::string race_of(const composition& c) {
  try {
    check_races(c);
  } catch (const error& e) {
    return e.what();
  }
  return {};
}

// Transfers between groups of `width` ranks, counted in bytes.
std::uint64_t bytes_across(const schedule& s, int width) {
  std::uint64_t sum = 0;
  for (int r = 0; r < s.what.ranks; ++r)
    for (const channel& c : s.ranks[static_cast<std::size_t>(r)].channels)
      for (const instruction& i : c)
        if (i.op == opcode::send && i.peer / width != r / width) sum += i.bytes;
  return sum;
}

TEST(plan_compose, has_the_forms_of_the_standard_collectives) {
  for (const kind k : {kind::broadcast, kind::reduce, kind::allreduce, kind::scatter, kind::gather,
                       kind::allgather, kind::reduce_scatter_block, kind::alltoall}) {
    expect_right(compose(make(k, 5, 3), 1));
  }
  for (const kind k : {kind::broadcast, kind::reduce, kind::allreduce, kind::allgather,
                       kind::reduce_scatter_block})
    expect_right(compose(make(k, 5, 7), 2));
  expect_right(compose(make(kind::allreduce, 5, 7), 3));
  EXPECT_THROW(compose(make(kind::alltoall, 5, 3), 2), error);
  EXPECT_THROW(compose(make(kind::scan, 5, 3), 1), error);
}

TEST(plan_compose, broadcast_is_one_primitive) {
  EXPECT_EQ(to_text(compose(make(kind::broadcast, 3, 2, 1), 1)),
            "multicast 1:send+0 -> 0:recv+0 2:recv+0, 8 bytes\n");
}

TEST(plan_compose, names_the_primitives_of_a_race) {
  composition c = composition::custom(4, 4, 4, 4);
  c.multicast(in(0), out(0), 8, 0, {1, 2});
  c.multicast(in(0), out(4), 8, 3, {2});
  const std::string why = race_of(c);
  EXPECT_NE(why.find("primitive 0 (multicast 0:send+0"), std::string::npos) << why;
  EXPECT_NE(why.find("primitive 1 (multicast 3:send+0"), std::string::npos) << why;
  EXPECT_NE(why.find("recv bytes 4 to 7 of rank 2"), std::string::npos) << why;
}

TEST(plan_compose, refuses_a_read_of_what_the_step_writes) {
  composition c = composition::custom(3, 4, 4, 4);
  c.multicast(in(0), out(0), 4, 0, {1});
  c.multicast(out(0), out(0), 4, 1, {2});
  EXPECT_NE(race_of(c), "");
  composition fenced = composition::custom(3, 4, 4, 4);
  fenced.multicast(in(0), out(0), 4, 0, {1});
  fenced.fence();
  fenced.multicast(out(0), out(0), 4, 1, {2});
  EXPECT_EQ(race_of(fenced), "");
  expect_right(derive_outcome(fenced));
}

TEST(plan_compose, lets_two_primitives_read_the_same) {
  composition c = composition::custom(3, 4, 4, 4);
  c.multicast(in(0), out(0), 4, 0, {1});
  c.reduction(in(0), out(0), 4, {0, 1, 2}, 2);
  EXPECT_EQ(race_of(c), "");
}

TEST(plan_compose, finds_races_like_a_naive_search) {
  std::mt19937 lot(7);
  for (int n = 0; n < 300; ++n) {
    composition c = composition::custom(2, 16, 16, 1);
    struct range {
      std::uint64_t begin, end;
    };
    std::vector<range> written;
    bool naive = false;
    for (int k = 0; k < 4; ++k) {
      const std::uint64_t begin = lot() % 12, bytes = 1 + lot() % 4;
      for (const range& w : written) naive = naive || (begin < w.end && w.begin < begin + bytes);
      written.push_back({begin, begin + bytes});
      c.multicast(in(0), out(begin), bytes, 0, {1});
    }
    ASSERT_EQ(race_of(c) != "", naive) << to_text(c);
  }
}

TEST(plan_compose, refuses_what_is_out_of_bounds) {
  composition c = composition::custom(3, 4, 4, 4);
  c.multicast(in(8), out(0), 12, 0, {1});
  EXPECT_NE(race_of(c).find("goes beyond send"), std::string::npos);
  EXPECT_THROW(c.multicast(in(0), out(0), 4, 0, {3}), error);
  EXPECT_THROW(c.multicast(in(0), out(0), 4, 0, {1, 1}), error);
  EXPECT_THROW(c.multicast(in(0), out(0), 0, 0, {1}), error);
}

TEST(plan_compose, derives_the_outcome_of_a_custom_one) {
  composition c = composition::custom(4, 2, 2, 4);
  c.reduction(in(0), out(4), 4, {0, 2, 3}, 1);
  c.fence();
  c.multicast(out(4), out(0), 4, 1, {0, 3});
  c = derive_outcome(c);
  ASSERT_EQ(c.what.outcome[3].size(), 1u);
  EXPECT_EQ(c.what.outcome[3][0], (piece{0, 4, {{0, 1, 0}, {2, 2, 0}}}));
  expect_right(c);
  expect_right(factorise(c, {2, 2}));
  expect_right(pipeline(factorise(c, {4}), 1));
}

TEST(plan_compose, refuses_to_reduce_what_was_reduced) {
  composition c = composition::custom(2, 1, 1, 4);
  c.reduction(in(0), out(0), 4, {0, 1}, 0);
  c.fence();
  c.multicast(in(0), out(0), 4, 1, {1});
  c.fence();
  c.reduction(out(0), out(0), 4, {0, 1}, 1);
  EXPECT_THROW(derive_outcome(c), error);
}

TEST(plan_factorise, sends_once_between_groups) {
  const composition c = compose(make(kind::broadcast, 12, 10), 1);
  EXPECT_EQ(bytes_across(lower(c, ""), 6), 6u * 40);
  EXPECT_EQ(bytes_across(lower(factorise(c, {2, 6}), ""), 6), 40u);
  EXPECT_EQ(bytes_across(lower(factorise(c, {2, 3, 2}), ""), 2), 40u + 4 * 40);
  expect_right(factorise(c, {2, 3, 2}));
}

TEST(plan_factorise, prunes_groups_without_leaves) {
  composition c = composition::custom(24, 1, 1, 4);
  c.multicast(in(0), out(0), 4, 0, {13, 22});
  c = factorise(derive_outcome(c), {2, 6, 2});
  ASSERT_EQ(c.steps.size(), 3u);
  EXPECT_EQ(to_text(c.steps[0][0]), "multicast 0:send+0 -> 12:scratch+0, 4 bytes");
  EXPECT_EQ(to_text(c.steps[1][0]), "multicast 12:scratch+0 -> 22:recv+0, 4 bytes @1");
  EXPECT_EQ(to_text(c.steps[2][0]), "multicast 12:scratch+0 -> 13:recv+0, 4 bytes @2");
  expect_right(c);
}

// What keeps all NICs of the root's node busy.
TEST(plan_factorise, takes_gathers_and_scatters_through_all_ranks_of_the_node) {
  for (const kind k : {kind::gather, kind::scatter}) {
    const schedule s = lower(factorise(compose(make(k, 16, 3, 5), 1), {2, 2, 4}), "");
    ASSERT_TRUE(verify(s)) << verify(s).message;
    const opcode wanted = k == kind::gather ? opcode::receive : opcode::send;
    for (int r = 4; r < 8; ++r) {
      std::uint64_t across = 0;
      for (const instruction& i : s.ranks[static_cast<std::size_t>(r)].channels[0])
        if (i.op == wanted && i.peer / 4 != 1) across += i.bytes;
      EXPECT_EQ(across, 3u * 12) << sucl::name(k) << ", rank " << r;
    }
  }
}

TEST(plan_factorise, is_right_for_uneven_groups_or_refuses) {
  for (const kind k : {kind::broadcast, kind::reduce})
    for (int ranks = 1; ranks <= 17; ++ranks)
      for (int root = 0; root < ranks; ++root)
        expect_right(factorise(compose(make(k, ranks, 3, root), 1), {(ranks + 3) / 4, 2, 2}));
  EXPECT_THROW(factorise(compose(make(kind::broadcast, 9, 3), 1), {2, 4}), error);
}

TEST(plan_stripe, uses_every_rank_of_the_node) {
  const composition c = stripe(compose(make(kind::broadcast, 12, 12), 1), 3, 3);
  const schedule s = lower(factorise(c, {2, 2, 3}), "");
  EXPECT_TRUE(verify(s)) << verify(s).message;
  for (int r = 0; r < 3; ++r) {
    std::uint64_t sent = 0;
    for (const instruction& i : s.ranks[static_cast<std::size_t>(r)].channels[0])
      if (i.op == opcode::send && i.peer >= 3) sent += i.bytes;
    EXPECT_EQ(sent, 32u) << r;  // a third of 48 bytes over two levels across nodes
  }
  EXPECT_THROW(stripe(c, 3, 4), error);
}

TEST(plan_ring, goes_from_node_to_node) {
  const schedule s =
      lower(factorise(ring(compose(make(kind::broadcast, 12, 5), 1), 3), {4, 3}), "");
  EXPECT_TRUE(verify(s)) << verify(s).message;
  for (int node = 0; node < 4; ++node)
    for (int r = 3 * node; r < 3 * node + 3; ++r)
      for (const instruction& i : s.ranks[static_cast<std::size_t>(r)].channels[0])
        EXPECT_TRUE(i.op != opcode::send || i.peer / 3 == node || i.peer / 3 == node + 1);
  EXPECT_EQ(bytes_across(s, 3), 3u * 20);
}

TEST(plan_ring, reduces_towards_the_root_from_anywhere) {
  for (int ranks = 1; ranks <= 13; ++ranks)
    for (int root = 0; root < ranks; ++root)
      expect_right(ring(compose(make(kind::reduce, ranks, 3, root), 1), 3));
}

TEST(plan_pipeline, keeps_what_depends_in_one_channel) {
  for (const kind k : {kind::broadcast, kind::reduce, kind::allreduce, kind::allgather,
                       kind::reduce_scatter_block}) {
    const composition c = pipeline(compose(make(k, 6, 110), 2), 4);
    const schedule s = lower(c, "");
    EXPECT_EQ(channel_count(s), 4);
    EXPECT_TRUE(verify(s)) << verify(s).message;
  }
}

TEST(plan_passes, can_be_put_together_in_any_order) {
  const std::vector<composition (*)(composition)> passes{
      [](composition c) { return stripe(std::move(c), 4, 3); },
      [](composition c) { return ring(std::move(c), 4); },
      [](composition c) { return factorise(std::move(c), {3, 2, 2}); },
      [](composition c) { return pipeline(std::move(c), 3); }};
  std::vector<int> order{0, 1, 2, 3};
  do {
    for (const kind k : {kind::broadcast, kind::reduce, kind::allreduce, kind::alltoall}) {
      composition c = compose(make(k, 11, 13, k == kind::reduce ? 6 : 0), 1);
      for (const int p : order) c = passes[static_cast<std::size_t>(p)](std::move(c));
      expect_right(c);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(plan_composition, is_built_with_every_parameter_of_the_recipe) {
  const problem p = make(kind::broadcast, 8, 640);
  const recipe r =
      recipe_from_text("composed(hierarchy=2,4;stripe=4;ring=2;pipeline=3;fuse=64;stagger=1)");
  EXPECT_EQ(to_text(build(compose(p, 1), r)), to_text(build(p, r)));
}

TEST(plan_defer_copies, copies_while_transfers_are_under_way) {
  const schedule s = from_text(R"(sucl-plan 1
collective allreduce ranks 2 element 4 counts 4
algorithm by hand
level 0 all via any
rank 0 scratch 48
channel 0
  copy scratch+0 send+0 16
  copy recv+0 send+0 16
  copy scratch+32 send+0 16
  send 1 scratch+0 16
  receive 1 scratch+16 16
  fence
  reduce recv+0 scratch+16 16
  copy scratch+16 scratch+32 16
rank 1 scratch 16
channel 0
  copy recv+0 send+0 16
  receive 0 scratch+0 16
  send 0 recv+0 16
  fence
  reduce recv+0 scratch+0 16
)");
  ASSERT_TRUE(verify(s)) << verify(s).message;
  const schedule later = defer_copies(s);
  EXPECT_TRUE(verify(later)) << verify(later).message;
  std::string order;
  for (const instruction& i : later.ranks[0].channels[0]) order += to_text(i) + "; ";
  // What is sent is copied first, and no copy passes a fence.
  EXPECT_EQ(order,
            "copy scratch+0 send+0 16; send 1 scratch+0 16; receive 1 scratch+16 16; "
            "copy recv+0 send+0 16; copy scratch+32 send+0 16; fence; "
            "reduce recv+0 scratch+16 16; copy scratch+16 scratch+32 16; ");
  EXPECT_EQ(later.ranks[1].channels[0], s.ranks[1].channels[0]);
}

TEST(plan_defer_copies, leaves_plans_with_memory_of_peers_as_they_are) {
  const schedule s = build(make(kind::allgather, 4, 64), recipe_from_text("one_shot"));
  EXPECT_EQ(to_text(defer_copies(s)), to_text(s));
}

TEST(plan_rotate_peers, starts_with_the_nearest_ahead) {
  // In digits of 2 and 2 rank 3 is one to the left in both digits of 0, and 2 in the outer one.
  const schedule s = rotate_peers(from_text(R"(sucl-plan 1
collective gather ranks 4 root 3 element 4 counts 1
algorithm by hand
level 0 all via any
rank 0 scratch 0
channel 0
  send 3 send+0 4
  fence
rank 1 scratch 0
channel 0
  send 3 send+0 4
  fence
rank 2 scratch 0
channel 0
  send 3 send+0 4
  fence
rank 3 scratch 0
channel 0
  receive 0 recv+0 4
  receive 1 recv+4 4
  receive 2 recv+8 4
  fence
  copy recv+12 send+0 4
)"),
                                  {2, 2});
  EXPECT_TRUE(verify(s)) << verify(s).message;
  const channel& root = s.ranks[3].channels[0];
  EXPECT_EQ(root[0].peer, 2);
  EXPECT_EQ(root[1].peer, 1);
  EXPECT_EQ(root[2].peer, 0);
  EXPECT_EQ(root[3].op, opcode::fence);
}

TEST(plan_rotate_peers, receives_come_first_and_messages_of_a_pair_in_order) {
  const char* const text = R"(sucl-plan 1
collective allreduce ranks 2 element 4 counts 8
algorithm by hand
level 0 all via any
rank 0 scratch 32
channel 0
  send 1 send+0 16
  receive 1 scratch+0 16
  send 1 send+16 16
  receive 1 scratch+16 16
  fence 2
  send 1 send+0 4
  receive 1 scratch+0 4
  fence
rank 1 scratch 32
channel 0
  receive 0 scratch+0 16
  send 0 send+0 16
  receive 0 scratch+16 16
  send 0 send+16 16
  fence 2
  receive 0 scratch+0 4
  send 0 send+0 4
  fence
)";
  const schedule s = rotate_peers(from_text(text), {2});
  const auto words = [](const instruction& i) { return to_text(i); };
  std::vector<std::string> seen;
  for (const instruction& i : s.ranks[0].channels[0]) seen.push_back(words(i));
  // The fence leaves two in flight, so what was before them stays there.
  EXPECT_EQ(seen,
            (std::vector<std::string>{"receive 1 scratch+0 16", "send 1 send+0 16",
                                      "receive 1 scratch+16 16", "send 1 send+16 16", "fence 2",
                                      "receive 1 scratch+0 4", "send 1 send+0 4", "fence"}));
}

TEST(plan_rotate_peers, is_right_for_hierarchies) {
  for (const kind k : {kind::alltoall, kind::allgather, kind::reduce_scatter_block, kind::gather})
    for (const std::vector<int>& factors : {std::vector{12}, {3, 4}, {2, 2, 3}}) {
      const schedule s = lower(factorise(compose(make(k, 12, 3), 1), factors), "");
      const schedule turned = rotate_peers(s, factors);
      EXPECT_TRUE(verify(turned)) << verify(turned).message;
      EXPECT_EQ(to_text(rotate_peers(turned, factors)), to_text(turned));
    }
}

TEST(plan_pack_scratch, reuses_memory_once_it_is_free) {
  const schedule loose = from_text(R"(sucl-plan 1
collective alltoall ranks 2 element 4 counts 8
algorithm by hand
level 0 all via any
rank 0 scratch 96
channel 0
  copy scratch+0 send+0 32
  copy recv+0 scratch+0 32
  copy scratch+32 send+32 32
  send 1 scratch+32 32
  receive 1 scratch+64 32
  fence
  copy recv+32 scratch+64 32
rank 1 scratch 0
channel 0
  copy recv+32 send+32 32
  send 0 send+0 32
  receive 0 recv+0 32
  fence
)");
  ASSERT_TRUE(verify(loose)) << verify(loose).message;
  const schedule tight = pack_scratch(loose);
  EXPECT_TRUE(verify(tight)) << verify(tight).message;
  EXPECT_EQ(tight.ranks[0].scratch_bytes, 64u);  // two are in use while the message is in flight
  EXPECT_EQ(tight.ranks[0].channels[0].size(), loose.ranks[0].channels[0].size());
}

TEST(plan_pack_scratch, never_takes_more) {
  for (const kind k : {kind::allreduce, kind::reduce, kind::allgather, kind::gather}) {
    const schedule loose =
        lower(factorise(stripe(pipeline(compose(make(k, 16, 640), 1), 3), 4, 3), {2, 2, 2, 2}), "");
    const schedule tight = pack_scratch(loose);
    EXPECT_TRUE(verify(tight)) << verify(tight).message;
    for (std::size_t r = 0; r < 16; ++r)
      EXPECT_LE(tight.ranks[r].scratch_bytes, loose.ranks[r].scratch_bytes);
  }
}

TEST(plan_fuse_messages, sends_one_message_for_many) {
  composition c = composition::custom(2, 16, 16, 4);
  for (std::uint64_t k = 0; k < 4; ++k) c.multicast(in(k * 16), out(48 - k * 16), 8, 0, {1});
  const schedule many = lower(derive_outcome(c), "");
  const schedule one = fuse_messages(many, 64);
  const auto sends = [](const schedule& s) {
    return std::count_if(s.ranks[0].channels[0].begin(), s.ranks[0].channels[0].end(),
                         [](const instruction& i) { return i.op == opcode::send; });
  };
  EXPECT_EQ(sends(many), 4);
  EXPECT_EQ(sends(one), 1);
  EXPECT_TRUE(verify(one)) << verify(one).message;
  EXPECT_EQ(sends(fuse_messages(many, 7)), 4);  // too long to be worth it
}

TEST(plan_fuse_messages, needs_no_copies_where_data_lies_together) {
  composition c = composition::custom(2, 4, 4, 4);
  for (std::uint64_t k = 0; k < 4; ++k) c.multicast(in(k * 4), out(k * 4), 4, 0, {1});
  const schedule one = fuse_messages(lower(derive_outcome(c), ""), 64);
  EXPECT_TRUE(verify(one)) << verify(one).message;
  EXPECT_EQ(instruction_count(one), 4u);
  EXPECT_EQ(one.ranks[0].scratch_bytes, 0u);
}

TEST(plan_fuse_messages, is_right_for_hierarchies) {
  for (const kind k : {kind::alltoall, kind::allgather, kind::reduce_scatter_block, kind::gather}) {
    composition c = factorise(compose(make(k, 12, 3), 1), {3, 4});
    const schedule s = lower(c, ""), fused = fuse_messages(s, 4096);
    EXPECT_TRUE(verify(fused)) << verify(fused).message;
    EXPECT_LE(instruction_count(fused), instruction_count(s) + 2000);
  }
}

}  // namespace
}  // namespace sucl::plan
