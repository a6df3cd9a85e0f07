// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Every collective x algorithm x number of ranks is proved right.
#include "cases.hpp"
#include "plan/passes/passes.hpp"
#include "plan/serialization/text.hpp"
#include "plan/verify/verify.hpp"

#include <sucl/error.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <vector>

namespace sucl::plan {
namespace {

void expect_right(const problem& p, const recipe& r) {
  const schedule s = build(p, r);
  const verdict v = verify(s);
  ASSERT_TRUE(v) << cases::describe(p, r) << "\n"
                 << v.message << "\n"
                 << (p.ranks <= 4 ? to_text(s) : std::string());
}

class every_collective : public testing::TestWithParam<kind> {
 protected:
  // All algorithms with all their parameter sets.
  void sweep(int ranks, std::uint64_t count, std::uint64_t element, bool all_recipes) {
    const int root = ranks * 2 / 3;
    const problem p = cases::make_problem(GetParam(), ranks, count, element, root);
    for (const algorithm_info* a : algorithms_for(GetParam())) {
      const std::vector<recipe> recipes = cases::recipes(*a, p);
      ASSERT_FALSE(recipes.empty()) << a->name << " on " << ranks << " ranks";
      for (const recipe& r : recipes) {
        ASSERT_NO_FATAL_FAILURE(expect_right(p, r));
        if (!all_recipes) break;
      }
    }
  }
};

// SUCL_TEST_EVERY_SIZE=1, which `make torture` sets: minutes of the larger sizes.
const bool every = std::getenv("SUCL_TEST_EVERY_SIZE") != nullptr;

// All up to 17, and larger ones of each sort; or all up to 64.
std::vector<int> numbers_of_ranks() {
  std::vector<int> all;
  for (int ranks = 1; ranks <= (every ? 64 : 17); ++ranks) all.push_back(ranks);
  if (!every) all.insert(all.end(), {24, 33, 64});
  return all;
}

TEST_P(every_collective, has_an_algorithm) { EXPECT_FALSE(algorithms_for(GetParam()).empty()); }

// All recipes with fewer elements than most numbers of ranks and with more, in turns: what has one
// of the two counts on a number of ranks has the other one on the next.
TEST_P(every_collective, is_right_for_1_to_64_ranks) {
  for (const int ranks : numbers_of_ranks()) {
    std::size_t turn = static_cast<std::size_t>(ranks);
    const problem few = cases::make_problem(GetParam(), ranks, 7, 4, ranks * 2 / 3);
    const problem many = cases::make_problem(GetParam(), ranks, 67, 1, ranks * 2 / 3);
    for (const algorithm_info* a : algorithms_for(GetParam()))
      for (const recipe& r : cases::recipes(*a, few))
        ASSERT_NO_FATAL_FAILURE(expect_right(turn++ % 2 == 0 ? few : many, r));
  }
}

// Every algorithm with one parameter set, in sizes that nothing divides or that are below the
// ranks.
TEST_P(every_collective, is_right_for_1_to_64_ranks_in_other_sizes) {
  for (const int ranks : numbers_of_ranks()) {
    ASSERT_NO_FATAL_FAILURE(sweep(ranks, 1021, 1, false));
    ASSERT_NO_FATAL_FAILURE(sweep(ranks, 1, 12, false));
  }
}

TEST_P(every_collective, is_right_for_primes) {
  ASSERT_NO_FATAL_FAILURE(sweep(97, 13, 8, every));
  if (!every) return;
  ASSERT_NO_FATAL_FAILURE(sweep(97, 1021, 1, false));
  ASSERT_NO_FATAL_FAILURE(sweep(251, 13, 8, false));
  ASSERT_NO_FATAL_FAILURE(sweep(251, 1021, 1, false));
}

// Levels that no factor of a prime fits, where the number of instructions allows it.
TEST_P(every_collective, is_right_for_primes_in_levels) {
  for (const int ranks : {127, 251}) {
    const problem p = cases::make_problem(GetParam(), ranks, 13, 8, ranks / 2);
    const bool one_root = rooted(p.kind) || p.kind == kind::allreduce;
    const std::string outer = std::to_string((ranks + 7) / 8);
    int tried = 0;
    for (const std::string& text :
         {"hierarchical(hierarchy=" + outer + ",4,2;inner=direct;outer=exchange)",
          "hierarchical(hierarchy=" + outer + ",8;inner=ring;outer=ring;leaders=2;pipeline=2)",
          "composed(hierarchy=" + outer + ",4,2;steps=1)",
          "composed(hierarchy=" + outer + ",4,2;steps=3;stripe=4;ring=" + outer + ";pipeline=2)"}) {
      const recipe r = recipe_from_text(text);
      const bool squared = r.algorithm == "composed" && (!one_root || p.kind == kind::allreduce);
      if (!refusal(p, r).empty() || (squared && r.steps == 1 && ranks > 127)) continue;
      ++tried;
      ASSERT_NO_FATAL_FAILURE(expect_right(p, r));
    }
    const bool scans = p.kind == kind::scan || p.kind == kind::exscan;
    EXPECT_EQ(tried > 0, !scans && (one_root || ranks == 127)) << ranks;
  }
}

TEST_P(every_collective, is_right_for_odd_sizes) {
  for (const std::uint64_t count : {1, 3, 1021, 65537})
    for (const std::uint64_t element : {1, 12})
      for (const int ranks : {1, 2, 3, 7, 12, 16})
        ASSERT_NO_FATAL_FAILURE(sweep(ranks, count, element, true));
}

TEST_P(every_collective, is_right_without_elements) {
  for (const int ranks : {1, 2, 5}) ASSERT_NO_FATAL_FAILURE(sweep(ranks, 0, 4, true));
}

TEST_P(every_collective, is_right_from_every_root) {
  if (!rooted(GetParam())) return;
  for (const int ranks : {2, 5, 9})
    for (int root = 0; root < ranks; ++root) {
      const problem p = cases::make_problem(GetParam(), ranks, 5, 4, root);
      for (const algorithm_info* a : algorithms_for(GetParam()))
        for (const recipe& r : cases::recipes(*a, p)) ASSERT_NO_FATAL_FAILURE(expect_right(p, r));
    }
}

// Blocks of v-forms in backward order with gaps between them.
TEST_P(every_collective, is_right_with_displacements) {
  for (const int ranks : {1, 2, 3, 6, 13}) {
    problem p = cases::make_problem(GetParam(), ranks, 5, 4, ranks / 2);
    const std::size_t rows = p.counts.size() / static_cast<std::size_t>(ranks);
    const bool inputs = GetParam() == kind::scatterv || GetParam() == kind::alltoallv;
    const bool outputs = inputs ? GetParam() == kind::alltoallv
                                : GetParam() == kind::allgatherv || GetParam() == kind::gatherv;
    if (!inputs && !outputs) return;
    for (std::size_t r = 0; r < rows; ++r)
      for (int i = 0; i < ranks; ++i) {
        const auto at = static_cast<std::uint64_t>(ranks - 1 - i) * 11 + r;
        if (inputs) p.send_displs.push_back(at);
        if (outputs) p.recv_displs.push_back(at + 3);
      }
    for (const bool in_place : {false, true}) {
      p.in_place = in_place;
      for (const algorithm_info* a : algorithms_for(GetParam()))
        for (const recipe& r : cases::recipes(*a, p)) ASSERT_NO_FATAL_FAILURE(expect_right(p, r));
    }
  }
}

TEST_P(every_collective, is_right_in_place) {
  for (const int ranks : {1, 2, 3, 6, 13}) {
    problem p = cases::make_problem(GetParam(), ranks, 9, 4, ranks - 1);
    p.in_place = true;
    for (const algorithm_info* a : algorithms_for(GetParam()))
      for (const recipe& r : cases::recipes(*a, p)) ASSERT_NO_FATAL_FAILURE(expect_right(p, r));
  }
}

TEST_P(every_collective, is_right_in_order_of_rank) {
  for (const int ranks : {1, 2, 3, 8, 13, 16}) {
    problem p = cases::make_problem(GetParam(), ranks, 9, 4, 0);
    p.order = ordering::ranked;
    for (const algorithm_info* a : algorithms_for(GetParam()))
      for (const recipe& r : cases::recipes(*a, p)) ASSERT_NO_FATAL_FAILURE(expect_right(p, r));
  }
}

// The same where what ranks of one node send each other goes through their scratch.
TEST_P(every_collective, is_right_with_local_messages_shared) {
  for (const int ranks : {2, 4, 7, 9}) {
    const problem p = cases::make_problem(GetParam(), ranks, 9, 4, ranks - 1);
    std::vector<int> node_of;
    for (int r = 0; r < ranks; ++r) node_of.push_back(r < 3 ? 0 : r / 4 + 1);
    for (const algorithm_info* a : algorithms_for(GetParam()))
      for (const recipe& r : cases::recipes(*a, p)) {
        if (!r.via.empty()) continue;
        const schedule s = share_local_messages(build(p, r), node_of);
        const verdict v = verify(s);
        ASSERT_TRUE(v) << cases::describe(p, r) << "\n" << v.message;
        for (std::size_t rank = 0; rank < s.ranks.size(); ++rank)
          for (const channel& c : s.ranks[rank].channels)
            for (const instruction& i : c) {
              if (i.op != opcode::send) continue;
              ASSERT_NE(node_of[rank], node_of[static_cast<std::size_t>(i.peer)]);
            }
      }
  }
}

TEST(local_messages, are_refused_across_nodes) {
  recipe r = recipe_from_text("hierarchical(hierarchy=2,2;via=mpi,ipc)");
  const schedule s = build(cases::make_problem(kind::allreduce, 4, 8, 4), r);
  EXPECT_TRUE(verify(share_local_messages(s, {0, 0, 1, 1})));
  EXPECT_THROW(share_local_messages(s, {0, 1, 1, 0}), sucl::error);
}

// What the executor relies on: one program for ranks in place and others.
TEST_P(every_collective, between_nodes_serves_in_place) {
  for (const int ranks : {2, 3, 4, 7, 12})
    for (const int leaders : {0, 1})
      for (const char* name : {"node_shot", "two_level"}) {
        const problem p = cases::make_problem(GetParam(), ranks, 9, 4, ranks - 1);
        recipe r;
        r.algorithm = name;
        r.leaders = leaders;
        for (int k = 0; k < ranks; ++k) r.nodes.push_back(k < 3 ? 0 : 1 + k % 2);
        // Of alltoallv only where both directions have the same counts.
        if (!refusal(p, r).empty() || GetParam() == kind::alltoallv) continue;
        EXPECT_TRUE(serves_in_place(build(p, r))) << cases::describe(p, r);
      }
}

// Reproducibility: all ranks get the same expression by every algorithm, also of 16-bit elements,
// for which it matters what one fold is.
TEST(every_allreduce, gives_all_ranks_the_same_bits) {
  for (int ranks = 1; ranks <= 20; ++ranks)
    for (const std::uint64_t element : {2, 4}) {
      const problem p = cases::make_problem(kind::allreduce, ranks, 50, element);
      for (const algorithm_info* a : algorithms_for(kind::allreduce))
        for (const recipe& r : cases::recipes(*a, p)) {
          const verdict v = verify(build(p, r));
          EXPECT_TRUE(v.identical) << cases::describe(p, r) << "\n" << v.message;
        }
    }
}

// The fixed order: what takes it has it, on every number of ranks, in place or not, and what is
// refused does not have it.
TEST_P(every_collective, folds_in_order_of_rank_or_refuses) {
  if (!reduces(GetParam())) return;
  int refused = 0, fixed = 0;
  for (const int ranks : {1, 2, 3, 4, 5, 7, 12})
    for (const std::uint64_t element : {2, 8})
      for (const bool in_place : {false, true}) {
        problem any = cases::make_problem(GetParam(), ranks, 9, element, ranks - 1);
        any.in_place = in_place;
        problem p = any;
        p.order = ordering::fixed;
        for (const algorithm_info* a : algorithms_for(GetParam()))
          for (const recipe& r : cases::recipes(*a, any)) {
            if (refusal(p, r).empty()) {
              ++fixed;
              ASSERT_NO_FATAL_FAILURE(expect_right(p, r));
              continue;
            }
            ++refused;
            if (ranks < 7 || in_place) continue;
            schedule s = build(any, r);
            s.what.order = ordering::fixed;
            EXPECT_TRUE(!verify(s) || a->name == std::string("node_shot") ||
                        a->name == std::string("two_level") ||
                        a->name == std::string("hierarchical") ||
                        a->name == std::string("composed"))
                << cases::describe(any, r);
          }
      }
  EXPECT_GT(fixed, 0);
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(all, every_collective, testing::ValuesIn(cases::kinds()),
                         [](const auto& i) { return std::string(sucl::name(i.param)); });

}  // namespace
}  // namespace sucl::plan
