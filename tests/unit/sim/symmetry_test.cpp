// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Which ranks are alike, and that simulating one of each kind is simulating all of them.
#include "sim/symmetry.hpp"

#include <sucl/error.hpp>

#include "sim/cases.hpp"
#include "sim/simulate.hpp"
#include "unit/sim/case.hpp"

#include <gtest/gtest.h>

namespace sucl::sim {
namespace {

namespace cases = plan::cases;

// The same with a price for everything, so that nothing is alike because it is free.
machine nodes_of(int nodes, int inner) {
  machine m = two_levels(nodes, inner);
  m.levels[0].transports = {{"mpi", 2 * us, 3e-7, 8e9}, {"ipc", 3 * us, 2e-7, 9e9}};
  m.levels[1].link_bandwidth = 50e9;
  m.levels[1].transports = {{"ipc", 1 * us, 1e-7, 0}, {"mpi", 2 * us, 1e-7, 0}};
  m.local.launch_overhead = 4e-7;
  m.local.launch_latency = 3 * us;
  m.local.copy_rate = m.local.reduce_rate = 40e9;
  return m;
}

plan::schedule built(kind k, int ranks, const char* recipe) {
  return plan::build(cases::make_problem(k, ranks, 1000, 4), plan::recipe_from_text(recipe));
}

// The first rank of each rank's class.
std::vector<int> classes_of(const plan::schedule& s, const machine& m) {
  flows f;
  const routes all_routes(s, m, f);
  const symmetry like(s, all_routes, false);
  std::vector<int> first;
  for (int r = 0; r < s.what.ranks; ++r) first.push_back(like.first_of(r));
  return first;
}

using firsts = std::vector<int>;

TEST(symmetry, all_ranks_of_a_ring_are_alike) {
  EXPECT_EQ(classes_of(built(kind::allreduce, 4, "ring"), nodes_of(4, 1)), (firsts{0, 0, 0, 0}));
}

TEST(symmetry, the_order_of_peers_counts) {
  EXPECT_EQ(classes_of(built(kind::gather, 4, "direct"), nodes_of(4, 1)), (firsts{0, 1, 2, 3}));
}

TEST(symmetry, the_position_in_the_machine_counts) {
  // Every other rank of the ring receives from another node.
  EXPECT_EQ(classes_of(built(kind::allreduce, 4, "ring"), nodes_of(2, 2)), (firsts{0, 1, 0, 1}));
}

TEST(symmetry, what_peers_do_counts) {
  const auto s = plan_of({send(1) + "fence\n", receive(0) + "fence\n", send(3) + "fence\n",
                          "copy recv+0 send+0 100000\n" + receive(2) + "fence\n"});
  EXPECT_EQ(classes_of(s, nodes_of(4, 1)), (firsts{0, 1, 2, 3}));
}

TEST(symmetry, who_shares_a_port_counts) {
  // 0 and 1 share the port of their node, 2 has its own, and 4, 6 and 8 receive alike.
  std::vector<std::string> programs(10);
  for (const auto& [from, to] : {std::pair{0, 4}, {1, 6}, {2, 8}}) {
    programs[static_cast<std::size_t>(from)] = send(to) + "fence\n";
    programs[static_cast<std::size_t>(to)] = receive(from) + "fence\n";
  }
  EXPECT_EQ(classes_of(plan_of(programs), nodes_of(5, 2)), (firsts{0, 0, 2, 3, 4, 3, 4, 3, 8, 3}));
}

TEST(symmetry, hierarchies_are_as_alike_as_their_machine) {
  const auto s = built(kind::allgather, 16, "composed(hierarchy=4,4;pipeline=2;via=mpi,ipc)");
  EXPECT_EQ(classes_of(s, nodes_of(4, 4)), firsts(16, 0));
}

TEST(symmetry, pairs_of_alike_ranks_are_those_of_the_first) {
  const auto s = built(kind::allreduce, 4, "ring");
  const machine m = nodes_of(4, 1);
  flows f;
  const routes all_routes(s, m, f);
  const symmetry like(s, all_routes, false);
  EXPECT_EQ(like.size_of(3), 4);
  EXPECT_EQ(like.pair_of(0, 1), (std::pair<std::int32_t, std::int32_t>{0, 1}));
  EXPECT_EQ(like.pair_of(3, 0), (std::pair<std::int32_t, std::int32_t>{0, 1}));
  EXPECT_EQ(like.pair_of(0, 3), (std::pair<std::int32_t, std::int32_t>{0, 3}));
  EXPECT_EQ(like.pair_of(2, 1), (std::pair<std::int32_t, std::int32_t>{0, 3}));
}

TEST(symmetry, ranks_are_apart_on_request) {
  const auto s = built(kind::allreduce, 4, "ring");
  const machine m = nodes_of(4, 1);
  flows f;
  const routes all_routes(s, m, f);
  const symmetry like(s, all_routes, true);
  for (int r = 0; r < 4; ++r) EXPECT_EQ(like.first_of(r), r);
}

// Some steps of 0.1 ns: what is added up in another order is rounded to others.
constexpr double tolerance = 2e-9;

void expect_equal(const span& a, const span& b) {
  EXPECT_NEAR(a.start, b.start, tolerance);
  EXPECT_NEAR(a.end, b.end, tolerance);
}

void expect_equal(const prediction& a, const prediction& b) {
  EXPECT_NEAR(a.seconds, b.seconds, tolerance);
  EXPECT_NEAR(a.min_seconds, b.min_seconds, tolerance);
  for (std::size_t r = 0; r < b.rank_seconds.size(); ++r) {
    EXPECT_NEAR(a.rank_seconds[r], b.rank_seconds[r], tolerance);
    for (std::size_t c = 0; c < b.timeline[r].size(); ++c)
      for (std::size_t i = 0; i < b.timeline[r][c].size(); ++i)
        expect_equal(a.timeline[r][c][i], b.timeline[r][c][i]);
  }
  for (std::size_t l = 0; l < b.levels.size(); ++l) {
    EXPECT_EQ(a.levels[l].bytes, b.levels[l].bytes);
    EXPECT_EQ(a.levels[l].messages, b.levels[l].messages);
  }
  ASSERT_EQ(a.uses.size(), b.uses.size());
  for (std::size_t u = 0; u < b.uses.size(); ++u) {
    EXPECT_EQ(a.uses[u].what, b.uses[u].what);
    EXPECT_EQ(a.uses[u].member, b.uses[u].member);
    EXPECT_NEAR(a.uses[u].bytes, b.uses[u].bytes, 1e-9 * b.uses[u].bytes);
  }
}

TEST(symmetry, one_rank_of_each_kind_does_what_all_do) {
  simulate_options all;
  all.timeline = all.usage = true;
  const simulate_options few = all;
  all.every_rank = true;
  std::uint64_t events = 0, all_events = 0;
  for (const machine& m : {nodes_of(8, 1), nodes_of(2, 4), nodes_of(3, 3)})
    for (const kind k : cases::kinds())
      for (const plan::algorithm_info& a : plan::algorithms()) {
        const plan::problem p = cases::make_problem(k, 8, 1003, 4);
        for (const plan::recipe& r : cases::recipes(a, p)) {
          if (r.pipeline > 4) continue;
          SCOPED_TRACE(cases::describe(p, r) + " on " + std::to_string(m.levels[0].groups));
          const plan::schedule s = plan::build(p, r);
          const prediction fast = simulate(s, m, few), full = simulate(s, m, all);
          expect_equal(fast, full);
          if (HasFailure()) return;
          events += fast.events;
          all_events += full.events;
        }
      }
  EXPECT_LT(events, all_events);
}

// Plans that are the same for every rank, simulated for rank 0 and for all.
TEST(symmetry, a_plan_of_one_rank_takes_as_long_as_that_of_all) {
  struct sample {
    kind what;
    std::uint64_t count;
    const char* recipe;
  };
  machine ports = nodes_of(4, 4);
  ports.levels[0].ports = 2;
  ports.levels[0].port_both = 12e9;
  ports.levels[0].fabric_bandwidth = 30e9;
  ports.local.bandwidth = 90e9;
  machine pairs = nodes_of(4, 4);
  pairs.levels[1].groups = 2;
  pairs.levels.push_back(pairs.levels[1]);
  pairs.local.bandwidth = 60e9;
  pairs.local.shared_by = 4;
  simulate_options options;
  options.usage = true;
  for (const machine& m : {nodes_of(4, 4), ports, pairs})
    for (const sample& s :
         {sample{kind::allreduce, 16000, "digits(hierarchy=2,2,2,2;via=mpi,mpi,ipc,ipc)"},
          {kind::allreduce, 1000, "digits(hierarchy=4,2,2;via=mpi,mpi,mpi;split=0)"},
          {kind::allreduce, 160000, "digits(hierarchy=4,2,2;pipeline=4;stagger=1;split=2)"},
          {kind::allgather, 10000, "digits(hierarchy=2,2,2,2)"},
          {kind::allgather, 10000, "packed_digits(hierarchy=4,2,2)"},
          {kind::reduce_scatter_block, 10000, "digits(hierarchy=4,2,2;via=mpi,ipc,ipc)"},
          {kind::reduce_scatter_block, 10000, "packed_digits(hierarchy=4,2,2)"},
          {kind::alltoall, 10000, "digits(hierarchy=4,2,2)"}}) {
      SCOPED_TRACE(s.recipe);
      const plan::problem p = cases::make_problem(s.what, 16, s.count, 4);
      const plan::symmetric_schedule one =
          plan::build_symmetric(p, plan::recipe_from_text(s.recipe));
      const prediction fast = simulate(one, m, options);
      const prediction full = simulate(plan::expand(one), m, options);
      EXPECT_NEAR(fast.seconds, full.seconds, 1e-3 * full.seconds);
      EXPECT_NEAR(fast.min_seconds, full.min_seconds, 1e-9 * full.min_seconds);
      for (std::size_t l = 0; l < full.levels.size(); ++l) {
        EXPECT_EQ(fast.levels[l].bytes, full.levels[l].bytes);
        EXPECT_EQ(fast.levels[l].messages, full.levels[l].messages);
      }
    }
}

TEST(symmetry, a_machine_whose_ranks_are_not_alike_is_refused) {
  machine m = nodes_of(4, 4);
  EXPECT_EQ(refusal(plan::digits({4, 4}), m), "");
  EXPECT_EQ(refusal(plan::digits({2, 2, 4}), m), "");
  EXPECT_EQ(refusal(plan::digits({8, 2}), m), "the members of level 'network' are no digits");
  m.levels[0].ports = 2;
  EXPECT_EQ(refusal(plan::digits({4, 4}), m),
            "ranks that share a port of level 'network' are taken to others");
  EXPECT_EQ(refusal(plan::digits({4, 2, 2}), m), "");
  const plan::problem p = cases::make_problem(kind::allgather, 16, 4, 4);
  const auto plan = plan::build_symmetric(p, plan::recipe_from_text("digits(hierarchy=4,4)"));
  EXPECT_THROW(simulate(plan, m), error);
}

}  // namespace
}  // namespace sucl::sim
