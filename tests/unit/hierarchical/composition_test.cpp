// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The steps of every operation on many placements of nodes and islands, proved as one plan.
#include "composition.hpp"

#include "core/operation/operation.hpp"
#include "plan/verify/verify.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sucl::testing {
namespace {

using placement = std::vector<int>;

// 2 to 6 ranks on 2 to 4 nodes or islands: even, uneven, alone and interleaved.
const std::vector<placement> placements{
    {0, 1},          {0, 0, 1},       {0, 1, 0},       {0, 1, 2},
    {0, 0, 1, 1},    {0, 1, 0, 1},    {0, 1, 1, 0},    {0, 0, 0, 1},
    {0, 0, 1, 2},    {0, 1, 2, 0},    {0, 1, 0, 1, 0}, {0, 0, 1, 1, 2},
    {0, 1, 2, 0, 1}, {0, 1, 1, 0, 2}, {0, 1, 2, 3, 0}, {0, 1, 2, 2, 1, 0}};

bool has_counts_for_each(kind k) {
  return k == kind::allgatherv || k == kind::reduce_scatter || k == kind::gatherv ||
         k == kind::scatterv || k == kind::alltoallv;
}

plan::problem problem_of(kind k, int ranks, int root, std::uint64_t count, bool in_place) {
  plan::problem p;
  p.kind = k == kind::barrier ? kind::allgather : k;
  p.ranks = ranks;
  p.root = root;
  p.element_bytes = 8;
  p.in_place = in_place || k == kind::barrier;
  p.counts = {k == kind::barrier ? 1 : count};
  if (!has_counts_for_each(k)) return p;
  p.counts.clear();
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < (k == kind::alltoallv ? ranks : 1); ++to)
      p.counts.push_back((count + static_cast<std::uint64_t>(from + to)) % 4);  // alike both ways
  return p;
}

std::string text_of(const composed_operation& c) {
  return std::string(c.barrier ? "barrier" : name(c.what.kind)) + " of " +
         ::testing::PrintToString(c.what.counts) + " on " + ::testing::PrintToString(c.node_of) +
         (c.islands ? " as islands" : "") + ", root " + std::to_string(c.what.root) + ", " +
         std::to_string(c.how.slices) + " of " + std::to_string(c.how.leaders) +
         " leaders, pieces of " + std::to_string(c.how.piece) +
         (c.what.in_place ? ", in place" : "");
}

std::vector<composed_operation> all_of(kind k, const placement& nodes, bool islands) {
  core::hierarchical_map where = core::map_nodes(nodes, 0);
  where.islands = islands;
  std::vector<composed_operation> all;
  if (!core::has_steps(static_cast<sucl_kind>(k), where)) return all;
  const int ranks = static_cast<int>(nodes.size());
  const bool cut = k == kind::broadcast || k == kind::reduce || k == kind::allreduce;
  const int leaders = cut ? where.max_leaders : 1;
  for (int root = 0; root < (rooted(k) ? ranks : 1); ++root)
    for (const bool in_place : {false, true})
      for (const std::uint64_t piece : {0, 2})
        for (int slices = 1; slices <= leaders; ++slices)
          if (cut || piece == 0)
            all.push_back({problem_of(k, ranks, root, 5, in_place),
                           k == kind::barrier,
                           nodes,
                           islands,
                           {slices, leaders, piece}});
  return all;
}

class CompositionOfIslands : public ::testing::TestWithParam<kind> {};

TEST_P(CompositionOfIslands, IsProvedAsOnePlan) {
  int proved = 0;
  for (const placement& nodes : placements)
    for (const bool islands : {false, true})
      for (const composed_operation& c : all_of(GetParam(), nodes, islands)) {
        const plan::verdict v = plan::verify(composition_of(c));
        ASSERT_TRUE(v) << text_of(c) << ": " << v.message;
        EXPECT_TRUE(v.identical) << text_of(c);
        ++proved;
      }
  EXPECT_GE(proved, 2 * static_cast<int>(placements.size()));
}

INSTANTIATE_TEST_SUITE_P(Kinds, CompositionOfIslands,
                         ::testing::Values(kind::barrier, kind::broadcast, kind::reduce,
                                           kind::allreduce, kind::reduce_scatter,
                                           kind::reduce_scatter_block, kind::allgather,
                                           kind::allgatherv, kind::alltoall, kind::alltoallv,
                                           kind::gather, kind::gatherv, kind::scatter,
                                           kind::scatterv),
                         [](const auto& tested) { return std::string(name(tested.param)); });

// What is left out, or begins too early, is found wherever there is something to be done.
TEST(DamagedComposition, IsRefused) {
  int refused = 0;
  for (const placement& nodes :
       {placement{0, 0, 1}, placement{0, 1, 0, 1}, placement{0, 1, 1, 0, 2}})
    for (const kind k : {kind::broadcast, kind::reduce, kind::allreduce, kind::allgather})
      for (const composed_operation& c : all_of(k, nodes, true)) {
        EXPECT_FALSE(plan::verify(composition_of(c, damage::no_step))) << text_of(c);
        // The root of a broadcast may have everything at once.
        if (k != kind::broadcast) {
          EXPECT_FALSE(plan::verify(composition_of(c, damage::no_order))) << text_of(c);
        }
        ++refused;
      }
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace sucl::testing
