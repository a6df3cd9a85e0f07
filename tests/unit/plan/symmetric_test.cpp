// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Plans that are the same for every rank: what proving one of them says about all.
#include "plan/symmetric/symmetric.hpp"

#include "plan/algorithms/algorithms.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace sucl::plan {
namespace {

problem problem_of(kind k, int ranks, std::uint64_t count) {
  problem p;
  p.kind = k;
  p.ranks = ranks;
  p.element_bytes = 4;
  p.counts = {count};
  return p;
}

struct sample {
  kind what;
  int ranks;
  std::uint64_t count;
  const char* recipe;
};

std::vector<sample> samples() {
  return {
      {kind::allreduce, 2, 6, "digits(hierarchy=2)"},
      {kind::allreduce, 8, 1, "digits(hierarchy=2,2,2;split=0)"},
      {kind::allreduce, 12, 5, "digits(hierarchy=4,3;split=0)"},
      {kind::allreduce, 24, 24, "digits(hierarchy=2,4,3)"},
      {kind::allreduce, 24, 30, "digits(hierarchy=2,4,3;split=1)"},
      {kind::allreduce, 30, 24, "digits(hierarchy=5,3,2;split=2)"},
      {kind::allreduce, 16, 256, "digits(hierarchy=2,2,4;pipeline=4;stagger=1)"},
      {kind::allgather, 24, 3, "digits(hierarchy=2,4,3)"},
      {kind::allgather, 24, 3, "packed_digits(hierarchy=2,4,3)"},
      {kind::allgather, 7, 3, "digits(hierarchy=7)"},
      {kind::reduce_scatter_block, 24, 3, "digits(hierarchy=2,4,3)"},
      {kind::reduce_scatter_block, 24, 3, "packed_digits(hierarchy=2,4,3)"},
      {kind::alltoall, 24, 3, "digits(hierarchy=2,4,3)"},
      {kind::alltoall, 9, 2, "digits(hierarchy=9)"},
      {kind::alltoall, 16, 1, "digits(hierarchy=2,2,2,2)"},
  };
}

symmetric_schedule built(const sample& s) {
  return build_symmetric(problem_of(s.what, s.ranks, s.count), recipe_from_text(s.recipe));
}

TEST(symmetric_plans, prove_as_the_verifier_does) {
  for (const sample& s : samples()) {
    const symmetric_schedule one = built(s);
    const verdict short_proof = prove(one);
    EXPECT_TRUE(short_proof) << s.recipe << ": " << short_proof.message;
    const schedule all = expand(one);
    const verdict long_proof = verify(all);
    EXPECT_TRUE(long_proof) << s.recipe << ": " << long_proof.message;
    EXPECT_TRUE(long_proof.identical) << s.recipe;
    const verdict claimed = prove(all, one);
    EXPECT_TRUE(claimed) << s.recipe << ": " << claimed.message;
  }
}

// What the verifier finds wrong in the plan of all ranks, the proof of one must not pass. Whatever
// it passes must be right.
TEST(symmetric_plans, damaged_ones_are_refused_wherever_the_verifier_does) {
  const std::vector<std::function<void(instruction&)>> damages{
      [](instruction& i) { i.peer = i.peer < 0 ? i.peer : i.peer ^ 1; },
      [](instruction& i) { i.src_offset += 4; },
      [](instruction& i) { i.src_offset += 12; },
      [](instruction& i) { i.dst_offset += 12; },
      [](instruction& i) { i.dst_offset = i.dst_offset >= 4 ? i.dst_offset - 4 : 0; },
      [](instruction& i) { i.bytes = i.bytes > 4 ? i.bytes - 4 : i.bytes; },
      [](instruction& i) { i.op = i.op == opcode::reduce ? opcode::copy : i.op; },
      [](instruction& i) { i.op = i.op == opcode::copy ? opcode::reduce : i.op; },
      [](instruction& i) { i.src = i.src == space::recv ? space::send : i.src; },
      [](instruction& i) { i = {}; },
  };
  int refused = 0, passed = 0;
  for (const sample& s : samples()) {
    const symmetric_schedule right = built(s);
    for (std::size_t c = 0; c < right.channels.size(); ++c)
      for (std::size_t k = 0; k < right.channels[c].size(); ++k)
        for (const auto& damage : damages) {
          symmetric_schedule wrong = right;
          damage(wrong.channels[c][k]);
          if (wrong.channels == right.channels) continue;
          if (!prove(wrong)) {
            ++refused;
            continue;
          }
          ++passed;
          const verdict all = verify(expand(wrong));
          EXPECT_TRUE(all) << s.recipe << ", instruction " << k << ": " << all.message;
        }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(passed, refused / 20);
}

TEST(symmetric_plans, one_damaged_rank_of_all_is_found) {
  const symmetric_schedule claim = built({kind::allgather, 1024, 1, "digits(hierarchy=16,16,4)"});
  schedule all = expand(claim);
  EXPECT_TRUE(prove(all, claim));
  all.ranks[777].channels[0][5].peer ^= 1;
  const verdict v = prove(all, claim);
  EXPECT_EQ(v.what, fault::malformed);
  EXPECT_EQ(v.rank, 777);
  EXPECT_EQ(v.instruction, 5);
}

TEST(symmetric_plans, folds_in_the_order_of_each_rank_differ) {
  // Along a digit of radix 3 each rank adds what it has first.
  symmetric_schedule s = built({kind::allreduce, 3, 1, "digits(hierarchy=3;split=0)"});
  for (region& r : s.regions) r.folded = false;
  EXPECT_EQ(prove(s).what, fault::differs);
  EXPECT_EQ(verify(expand(s)).what, fault::differs);
}

TEST(symmetric_plans, fold_all_parts_once) {
  symmetric_schedule s = built({kind::allreduce, 3, 1, "digits(hierarchy=3;split=0)"});
  s.channels[0].pop_back();
  EXPECT_EQ(prove(s).what, fault::malformed);
}

TEST(symmetric_plans, regions_do_not_overlap) {
  symmetric_schedule s = built({kind::allgather, 8, 1, "digits(hierarchy=4,2)"});
  s.regions.back().cell *= 2;
  EXPECT_FALSE(prove(s));
}

TEST(symmetric_plans, translations_take_the_collective_to_itself) {
  // Blocks of ranks in another order of digits.
  symmetric_schedule s = built({kind::allgather, 8, 1, "digits(hierarchy=4,2)"});
  for (region& r : s.regions)
    if (r.where == space::recv) r.dimensions = {1, 0};
  EXPECT_EQ(prove(s).what, fault::malformed);
}

TEST(symmetric_plans, are_refused_where_shares_are_uneven) {
  const problem p = problem_of(kind::allreduce, 8, 12);
  EXPECT_EQ(refusal(p, recipe_from_text("digits(hierarchy=4,2;split=2)")),
            "digits: 12 elements are not a multiple of 8 shares");
  EXPECT_EQ(refusal(p, recipe_from_text("digits(hierarchy=4,2;split=1)")), "");
  EXPECT_EQ(build_symmetric(p, recipe_from_text("digits(hierarchy=4,2)")).channels,
            build_symmetric(p, recipe_from_text("digits(hierarchy=4,2;split=1)")).channels);
}

// In seconds what takes the verifier of all ranks 268 million cells.
TEST(symmetric_plans, of_16384_ranks_are_proved) {
  for (const auto& [what, count, recipe] :
       {std::tuple{kind::allreduce, 16384, "digits(hierarchy=16,16,16,4)"},
        {kind::allreduce, 2, "digits(hierarchy=16,16,16,4;split=0)"},
        {kind::allgather, 1, "digits(hierarchy=16,16,16,4)"},
        {kind::reduce_scatter_block, 1, "digits(hierarchy=16,16,16,4)"},
        {kind::alltoall, 1, "digits(hierarchy=4096,4)"}}) {
    symmetric_schedule s = built({what, 16384, static_cast<std::uint64_t>(count), recipe});
    const verdict v = prove(s);
    EXPECT_TRUE(v) << recipe << ": " << v.message;
    s.channels[0][s.channels[0].size() / 2].peer ^= 4;
    EXPECT_FALSE(prove(s)) << recipe;
  }
}

}  // namespace
}  // namespace sucl::plan
