// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The bits of sums whose association shows: the same on all ranks by every algorithm, and in the
// fixed order those of a plain loop over the ranks.
#include "backends/shm_plan/backend.hpp"
#include "backends/shm_plan/plans/plan_cache.hpp"
#include "base/config/determinism.hpp"
#include "support/ordered_sums.hpp"
#include "unit/shm_plan/executor_draw.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstring>

namespace {

using namespace sucl;
using namespace sucl::testing;

class executor_order : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ranks, executor_order, ::testing::Values(2, 3, 4, 5, 7));

const char* const allreduces[] = {"ring",
                                  "exchange",
                                  "exchange(radices=2;split=0)",
                                  "doubling",
                                  "doubling(radices=3)",
                                  "doubling(radices=7)",
                                  "cyclic(radices=3)",
                                  "direct",
                                  "direct(ports=2)",
                                  "tree(radices=3)",
                                  "hierarchical(hierarchy=4,2;outer=doubling)",
                                  "composed(hierarchy=4,2;pipeline=3)",
                                  "composed(steps=1)",
                                  "composed(steps=2)",
                                  "node_shot",
                                  "two_level(outer=tree)",
                                  "staged_one_shot",
                                  "staged_two_shot",
                                  "read_one_shot",
                                  "read_two_shot"};

struct summed {
  type element;
  op reduction;
};
const summed all_summed[] = {{type::fp32, op::sum},         {type::fp64, op::sum},
                             {type::fp64, op::prod},        {type::fp32, op::avg},
                             {type::complex_fp32, op::sum}, {type::complex_fp64, op::prod},
                             {type::bf16, op::sum},         {type::bf16, op::avg}};

// One rank's part of an operation, and what it held in the end.
struct part {
  std::vector<std::byte> send, recv;
  std::vector<std::uint64_t> counts;

  sucl_operation prepare(kind k, const summed& s, std::uint64_t count, int rank, int size,
                         bool in_place) {
    auto o = operation(k, s.element, count, s.reduction);
    const std::uint64_t blocks = k == kind::reduce_scatter || k == kind::reduce_scatter_block
                                     ? static_cast<std::uint64_t>(size)
                                     : 1;
    std::uint64_t elements = count * blocks;
    if (k == kind::reduce_scatter) {
      elements = 0;
      for (int r = 0; r < size; ++r) {
        counts.push_back(count + static_cast<std::uint64_t>(r));
        elements += counts.back();
      }
      o.recv_counts = counts.data();
    }
    o.root = k == kind::reduce ? size - 1 : 0;
    send = ordered_input(s.element, s.reduction, rank, elements);
    recv.assign(send.size(), std::byte{0});
    const bool inside = in_place && (k != kind::reduce || rank == o.root);
    if (inside) recv = send;
    if (inside) o.flags |= SUCL_FLAG_IN_PLACE;
    o.send = inside ? nullptr : send.data();
    o.recv = recv.data();
    return o;
  }
};

// Runs an operation on all ranks; the results, by rank.
std::vector<part> run_on(const std::vector<int>& nodes, kind k, const summed& s,
                         std::uint64_t count, bool in_place, const tune::table* t, bool ordered) {
  std::vector<part> parts(nodes.size());
  for_nodes(
      nodes,
      [&](const backends& b, const sucl_comm_info& info) {
        part& mine = parts[static_cast<std::size_t>(info.rank)];
        // The second call of a plan_instance is a prepared one.
        for (int call = 0; call < 2; ++call) {
          mine = {};
          auto o = mine.prepare(k, s, count, info.rank, info.size, in_place);
          if (call == 1) o.flags |= SUCL_FLAG_MAY_BLOCK;
          const flight done = run(b.plan, o);
          EXPECT_EQ(done.status, SUCL_SUCCESS) << done.error.message;
        }
      },
      {}, t, ordered);
  return parts;
}

std::vector<int> on_one(int size) { return std::vector<int>(static_cast<std::size_t>(size), 0); }

TEST_P(executor_order, gives_all_ranks_the_same_bits_by_every_algorithm) {
  unsigned turn = 0;
  for (const std::string recipe : allreduces) {
    const tune::table t = table_of(recipe.c_str(), tune::memory_kind::system);
    for (const summed& s : all_summed) {
      const std::uint64_t count = std::vector<std::uint64_t>{1, 13, 3000, 5003}[turn % 4];
      const bool in_place = turn++ % 3 == 0;
      const auto parts = run_on(on_one(GetParam()), kind::allreduce, s, count, in_place, &t, false);
      for (std::size_t r = 1; r < parts.size(); ++r)
        EXPECT_TRUE(parts[r].recv == parts[0].recv)
            << recipe << ", " << name(s.element) << " " << name(s.reduction) << ", " << count
            << " elements, rank " << r;
    }
  }
}

void expect_fixed_order(const std::vector<int>& nodes, const std::string& recipe, bool several) {
  const int size = static_cast<int>(nodes.size());
  const tune::table t =
      recipe.empty() ? tune::table{} : table_of(recipe.c_str(), tune::memory_kind::system);
  unsigned turn = static_cast<unsigned>(size);
  for (const kind k : {kind::allreduce, kind::reduce, kind::reduce_scatter_block,
                       kind::reduce_scatter, kind::scan, kind::exscan}) {
    for (const summed& s : all_summed) {
      const bool scans = k == kind::scan || k == kind::exscan;
      if (scans && s.reduction == op::avg) continue;
      if (!core::plans_support(static_cast<sucl_kind>(k), several, true)) continue;
      // Between nodes narrow floats and averages are converted above.
      if (several && (s.element == type::bf16 || s.reduction == op::avg)) continue;
      const std::uint64_t count = std::vector<std::uint64_t>{1, 13, 700, 5003}[turn % 4];
      const bool in_place = turn++ % 3 == 0;
      const auto parts = run_on(nodes, k, s, count, in_place, &t, true);
      for (int r = 0; r < size; ++r) {
        const part& mine = parts[static_cast<std::size_t>(r)];
        const auto wanted = ordered_result(k, s.element, s.reduction, r, size, count,
                                           k == kind::reduce ? size - 1 : 0);
        ASSERT_LE(wanted.size(), mine.recv.size());
        EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), mine.recv.begin()))
            << recipe << ", " << name(k) << " of " << name(s.element) << " " << name(s.reduction)
            << ", " << count << " elements, rank " << r << (in_place ? ", in place" : "");
      }
    }
  }
}

TEST_P(executor_order, folds_in_the_fixed_order_whichever_plan_a_table_asks_for) {
  for (const char* recipe : {"", "ring", "direct", "staged_two_shot", "read_two_shot",
                             "composed(steps=1)", "doubling(radices=7)", "staged_one_shot"})
    expect_fixed_order(on_one(GetParam()), recipe, false);
}

TEST_P(executor_order, folds_in_the_fixed_order_between_nodes) {
  if (GetParam() < 3) return;
  std::vector<int> nodes;
  for (int r = 0; r < GetParam(); ++r) nodes.push_back(r % 2);
  expect_fixed_order(nodes, "", true);
}

// Online trials decide by time: nothing that is reduced may be among them.
TEST(executor_order, no_trial_is_held_between_plans_that_reduce) {
  for (const core::tuning_row& r : core::default_tuning())
    if (r.tuned_online) {
      EXPECT_NE(r.kind, SUCL_KIND_COUNT);
      EXPECT_FALSE(reduces(static_cast<kind>(r.kind)));
    }
}

TEST(determinism, knows_which_reductions_round) {
  using base::associative;
  EXPECT_FALSE(associative(SUCL_TYPE_FP32, SUCL_OP_SUM));
  EXPECT_FALSE(associative(SUCL_TYPE_BF16, SUCL_OP_AVG));
  EXPECT_FALSE(associative(SUCL_TYPE_COMPLEX_FP64, SUCL_OP_PROD));
  EXPECT_TRUE(associative(SUCL_TYPE_FP64, SUCL_OP_MAX));
  EXPECT_TRUE(associative(SUCL_TYPE_FP64_LOC, SUCL_OP_MINLOC));
  EXPECT_TRUE(associative(SUCL_TYPE_INT16, SUCL_OP_PROD));
  EXPECT_TRUE(associative(SUCL_TYPE_UINT64, SUCL_OP_AVG));
  EXPECT_FALSE(base::order_matters(SUCL_KIND_ALLGATHER, SUCL_TYPE_FP32, SUCL_OP_SUM));
}

}  // namespace
