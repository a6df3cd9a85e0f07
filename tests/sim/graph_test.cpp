// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Machines that are graphs: what limits them, the trees that are packed in them, and the plans.
#include "cases.hpp"
#include "interpret.hpp"
#include "plan/passes/passes.hpp"
#include "plan/verify/verify.hpp"
#include "sim/simulate.hpp"
#include "tune/bound.hpp"
#include "tune/graph/tree_plan.hpp"
#include "tune/search.hpp"

#include <sucl/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace sucl::tune {
namespace {

using plan::problem;

sim::machine shipped(const std::string& name) {
  return sim::load_machine(std::string(SUCL_TEST_MACHINES) + "/" + name + ".toml");
}

problem make(kind k, int ranks, std::uint64_t count, std::uint64_t element = 4) {
  return plan::cases::make_problem(k, ranks, count, element, k == kind::broadcast ? 1 : 0);
}

// Five ranks of which no two are alike: wires of several speeds, one of them one way, and a switch.
sim::machine irregular() {
  return sim::machine_from_toml(R"(
name = "irregular"
summary = "for tests"
[graph]
ranks = 5
switches = ["s"]
[[graph.link]]
both = [[0, 1], [1, 2]]
bandwidth = 10.0
latency = 1.0
[[graph.link]]
one_way = [[2, 3], [3, 0]]
bandwidth = 5.0
latency = 0.5
[[graph.link]]
both = [[2, "s"], [3, "s"], [4, "s"]]
bandwidth = 20.0
latency = 0.25
)",
                                "irregular");
}

const std::vector<kind>& collectives() {
  static const std::vector<kind> list{kind::broadcast, kind::reduce, kind::allgather,
                                      kind::reduce_scatter_block, kind::allreduce};
  return list;
}

// The algorithm bandwidth of an allgather that no schedule exceeds, in GB/s.
double optimum(const sim::machine& m, int ranks) {
  const cut c = tightest_cut(wiring_of(m, ranks), roots(static_cast<std::size_t>(ranks), 1));
  return ranks * c.bandwidth / static_cast<double>(c.units) / 1e9;
}

// What ForestColl's own program says of these topologies.
TEST(graph, optima_are_the_published_ones) {
  EXPECT_NEAR(optimum(shipped("a100-x2"), 16), 346.67, 0.005);
  EXPECT_NEAR(optimum(shipped("mi250-x2"), 32), 354.13, 0.005);
}

TEST(graph, the_cut_that_binds_is_named) {
  const bound b = lower_bound(make(kind::allgather, 32, 1 << 20), shipped("mi250-x2"));
  EXPECT_NE(b.why.find("what enters 0, 1:"), std::string::npos) << b.why;
  EXPECT_NEAR(b.seconds, 30.0 * (4 << 20) / 332e9, 2e-6);
}

// Every tree reaches every rank once, from a rank that has been reached; no link is in more than it
// has capacity for.
TEST(graph, packed_trees_span_and_fit) {
  for (const char* name : {"a100-x2", "ndv2-x2", "mi250-x2"})
    for (const int k : {1, 3}) {
      const sim::machine m = shipped(name);
      const int ranks = std::min(16, static_cast<int>(sim::rank_count(m)));
      const wiring w = wiring_of(m, ranks);
      const roots wanted(static_cast<std::size_t>(ranks), k);
      const capacities c = without_switches(w, units_in(w, min_time(w, wanted)), wanted);
      ASSERT_TRUE(can_pack(c, wanted)) << name;
      hop_costs costs;
      costs.ranks = ranks;
      costs.links = 1;
      costs.all.resize(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks), {1, 1});
      std::map<std::pair<int, int>, std::int64_t> used;
      std::vector<std::int64_t> made(static_cast<std::size_t>(ranks));
      for (const tree& t : pack_trees(c, wanted, costs)) {
        made[static_cast<std::size_t>(t.root)] += t.weight;
        std::set<int> reached{t.root};
        for (const hop& h : t.hops) {
          EXPECT_TRUE(reached.contains(h.from));
          EXPECT_TRUE(reached.insert(h.to).second);
          used[{h.from, h.to}] += t.weight;
        }
        EXPECT_EQ(static_cast<int>(reached.size()), ranks) << name;
      }
      EXPECT_EQ(made, wanted) << name;
      for (const auto& [ends, units] : used)
        EXPECT_LE(units, c.at(ends.first, ends.second)) << name;
    }
}

TEST(graph, plans_are_right_and_give_what_numbers_say) {
  for (const kind k : collectives())
    for (const bool in_place : {false, true})
      for (const std::uint64_t count : {1, 7, 1000}) {
        problem p = make(k, 5, count);
        p.in_place = in_place;
        const sim::machine m = irregular();
        ASSERT_TRUE(takes_trees(p, m));
        tree_planner planner(p, m);
        for (const tree_recipe& r :
             {tree_recipe{1, 1, 1}, tree_recipe{3, 1, 2, true}, tree_recipe{2, 2, 3, false, true},
              tree_recipe{1, 16, 4}, tree_recipe{2, 1, 4, false, false, 2}}) {
          const plan::schedule s = planner.make(r);
          const plan::verdict v = plan::verify(s);
          ASSERT_TRUE(v) << to_text(r) << ": " << v.message;
          EXPECT_EQ(plan::interpret(s, count), "") << to_text(r);
          EXPECT_GT(sim::simulate(s, m).seconds, 0);
        }
      }
}

// A message that a plan leaves out, or sends on before it is there, is found.
TEST(graph, damaged_plans_are_refused) {
  const problem p = make(kind::allgather, 5, 100);
  tree_planner planner(p, irregular());
  const plan::schedule right = planner.make({2, 1, 2});
  int damaged = 0;
  for (std::size_t r = 0; r < right.ranks.size(); ++r)
    for (std::size_t c = 0; c < right.ranks[r].channels.size(); ++c)
      for (std::size_t i = 0; i < right.ranks[r].channels[c].size(); ++i) {
        plan::schedule s = right;
        auto& code = s.ranks[r].channels[c];
        const plan::opcode op = code[i].op;
        code.erase(code.begin() + static_cast<std::ptrdiff_t>(i));
        if (op == plan::opcode::fence && i + 1 < right.ranks[r].channels[c].size()) continue;
        ++damaged;
        EXPECT_FALSE(plan::verify(s)) << "rank " << r << ", channel " << c << ", instruction " << i;
      }
  EXPECT_GT(damaged, 50);
}

// No plan is faster than the bound, on graphs and on levels.
TEST(graph, no_plan_is_faster_than_the_bound) {
  for (const kind k : collectives())
    for (const std::uint64_t count : {2u, 4096u, 1u << 20}) {
      const problem p = make(k, 5, count);
      const search_result found = search(p, irregular());
      EXPECT_TRUE(found.best[0].verified);
      EXPECT_GT(found.least.seconds, 0);
      EXPECT_FALSE(found.least.why.empty());
      EXPECT_GE(found.best[0].seconds, found.least.seconds * (1 - 1e-6))
          << sucl::name(k) << " " << count << ": " << found.least.why;
    }
  for (const char* name : {"frontier", "delta"})
    for (const kind k : {kind::broadcast, kind::reduce, kind::allgather, kind::allreduce,
                         kind::reduce_scatter_block, kind::alltoall, kind::gather, kind::scatter})
      for (const int ranks : {5, 16}) {
        const problem p = make(k, ranks, 1 << 16);
        const sim::machine m = shipped(name);
        const bound b = lower_bound(p, m);
        for (const plan::algorithm_info* a : plan::algorithms_for(k))
          for (const plan::recipe& r : plan::cases::recipes(*a, p)) {
            if (!r.via.empty()) continue;
            EXPECT_GE(sim::simulate(plan::build(p, r), m).seconds, b.seconds * (1 - 1e-3))
                << name << " " << sucl::name(k) << " " << plan::to_text(r) << ": " << b.why;
          }
      }
}

// What was reached when this was written, with some room; the page of results has the figures.
TEST(graph, published_machines_are_planned_well) {
  struct wanted {
    const char* machine;
    int ranks;
    std::uint64_t bytes;
    double gap;
  };
  for (const wanted& w : {wanted{"a100-x2", 16, 1 << 26, 1.03},
                          {"h100-x2", 16, 1 << 26, 1.04},
                          {"ndv2-x4", 32, 1 << 24, 1.02},
                          {"dgx2-x2", 32, 32, 1.01}}) {
    const problem p = make(kind::allgather, w.ranks, w.bytes, 1);
    search_options one;
    one.keep = 1;
    const search_result found = search(p, shipped(w.machine), one);
    EXPECT_TRUE(found.best[0].verified);
    EXPECT_LE(found.best[0].seconds, w.gap * found.least.seconds) << w.machine;
  }
}

TEST(graph, a_plan_that_is_wired_nowhere_is_refused) {
  const problem p = make(kind::alltoall, 5, 16);
  try {
    sim::simulate(plan::build(p, plan::recipe_from_text("pairwise")), irregular());
    FAIL() << "rank 0 has no wire to rank 4";
  } catch (const error& e) {
    EXPECT_NE(e.message().find("no links and switches"), std::string::npos) << e.message();
  }
  sim::machine apart = irregular();
  std::erase_if(apart.wires.links, [](const sim::link& l) { return l.from == 4 || l.to == 4; });
  EXPECT_THROW(tree_planner(make(kind::allgather, 5, 16), apart), error);
}

}  // namespace
}  // namespace sucl::tune
