// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Search returns right plans, always the same, and none of the published parameter sets is better.
#include "tune/search.hpp"
#include "tune/digit_search.hpp"

#include "cases.hpp"
#include "plan/ir/traffic.hpp"
#include "plan/passes/passes.hpp"
#include "plan/verify/verify.hpp"
#include "sim/simulate.hpp"
#include "tune/candidates.hpp"
#include "tune/cost/estimate.hpp"
#include "tune/rank_hierarchy.hpp"

#include <sucl/error.hpp>

#include <gtest/gtest.h>

namespace sucl::tune {
namespace {

using plan::problem;

// Nodes of four ranks with two NICs each, and no numbers that the shipped descriptions may change.
sim::machine small_machine() {
  return sim::machine_from_toml(R"(
name = "small"
summary = "for tests"
[[level]]
name = "network"
groups = 64
ports = 2
binding = "packed"
port_bandwidth = 25.0
[[level.transport]]
name = "mpi"
latency = 4.0
overhead = 0.5
[[level]]
name = "node"
groups = 4
link_bandwidth = 100.0
[[level.transport]]
name = "ipc"
latency = 2.0
overhead = 0.5
[[level.transport]]
name = "mpi"
latency = 8.0
overhead = 0.5
[memory]
bandwidth = 1500.0
copy_rate = 600.0
reduce_rate = 400.0
launch_latency = 3.0
launch_overhead = 2.0
)",
                                "small");
}

problem make(kind k, int ranks, std::uint64_t bytes) {
  return plan::cases::make_problem(k, ranks, bytes / 4, 4);
}

const std::vector<kind>& collectives() {
  static const std::vector<kind> list{kind::broadcast, kind::reduce,  kind::allreduce,
                                      kind::allgather, kind::gather,  kind::reduce_scatter_block,
                                      kind::scatter,   kind::alltoall};
  return list;
}

double time_of(const problem& p, const plan::recipe& r, const sim::machine& m) {
  return sim::simulate(plan::build(p, r), m).seconds;
}

TEST(search, is_never_worse_than_published_parameters) {
  const sim::machine m = small_machine();
  for (const kind k : collectives())
    for (const int ranks : {4, 8, 16})
      for (const std::uint64_t bytes : {8u, 65536u, 16777216u}) {
        const problem p = make(k, ranks, bytes);
        const found best = search(p, m).best.front();
        EXPECT_TRUE(best.verified);
        EXPECT_DOUBLE_EQ(best.seconds, time_of(p, best.how, m));
        for (const auto& sets : {hiccl_sets(p, m), ext_mpi_sets(p, m)})
          for (const published& s : sets)
            EXPECT_LE(best.seconds, time_of(p, s.how, m))
                << s.source << " " << plan::cases::describe(p, s.how) << "\n"
                << plan::to_text(best.how);
      }
}

TEST(search, gives_the_same_answer_again_in_any_number_of_threads) {
  const sim::machine m = small_machine();
  const problem p = make(kind::allreduce, 24, 1 << 20);
  search_options o;
  o.threads = 1;
  const search_result a = search(p, m, o);
  o.threads = 5;
  const search_result b = search(p, m, o);
  ASSERT_EQ(a.best.size(), b.best.size());
  EXPECT_EQ(a.simulated, b.simulated);
  for (std::size_t i = 0; i < a.best.size(); ++i) {
    EXPECT_EQ(a.best[i].how, b.best[i].how);
    EXPECT_EQ(a.best[i].seconds, b.best[i].seconds);
    EXPECT_EQ(a.best[i].hash, plan::hash(plan::build(p, b.best[i].how)));
  }
}

TEST(search, takes_any_kind_and_number_of_ranks) {
  const sim::machine m = small_machine();
  for (const kind k : plan::cases::kinds())
    for (const int ranks : {1, 2, 7, 13}) {
      const problem p = make(k, ranks, 4096);
      const search_result r = search(p, m);
      EXPECT_TRUE(r.best.front().verified) << plan::cases::describe(p, r.best.front().how);
    }
}

TEST(search, answers_with_the_smallest_budget) {
  search_options o;
  o.budget = 1;
  EXPECT_FALSE(search(make(kind::alltoall, 16, 4096), small_machine(), o).best.empty());
}

TEST(search, returns_no_more_than_asked_by_rising_time) {
  search_options o;
  o.keep = 3;
  const search_result r = search(make(kind::allreduce, 16, 65536), small_machine(), o);
  ASSERT_EQ(r.best.size(), 3u);
  EXPECT_LE(r.best[0].seconds, r.best[1].seconds);
  EXPECT_LE(r.best[1].seconds, r.best[2].seconds);
}

TEST(search, says_what_is_not_proved) {
  search_options o;
  o.max_verified = 10;
  EXPECT_FALSE(search(make(kind::allreduce, 16, 65536), small_machine(), o).best[0].verified);
}

TEST(search, refuses_more_ranks_than_there_are) {
  EXPECT_THROW(search(make(kind::allreduce, 257, 8), small_machine()), error);
}

TEST(search, says_that_every_plan_is_too_large) {
  sim::machine m = small_machine();
  m.levels[0].groups = 16384;
  try {
    search(make(kind::alltoall, 65536, 1024), m);
    FAIL() << "there is a plan";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::out_of_memory) << e.what();
    EXPECT_NE(e.message().find("every plan of alltoall for 65536 ranks"), std::string::npos);
  }
}

// Peer memory reaches as far as there is a transport for it.
TEST(candidates, use_peer_memory_in_a_node_only) {
  const sim::machine m = small_machine();
  const auto has = [&](int ranks, const char* algorithm) {
    for (const plan::recipe& r : candidates(make(kind::allreduce, ranks, 4096), m))
      if (r.algorithm == algorithm) return true;
    return false;
  };
  EXPECT_TRUE(has(4, "two_shot"));
  EXPECT_FALSE(has(8, "two_shot"));
  EXPECT_TRUE(share_memory(m, 4));
  EXPECT_FALSE(share_memory(m, 5));
}

TEST(rank_hierarchies, follow_the_machine) {
  const rank_hierarchy own = machine_hierarchy(small_machine(), 32);
  EXPECT_EQ(own.factors, (std::vector<int>{8, 4}));
  EXPECT_EQ(own.vias, (std::vector<std::string>{"mpi", "ipc"}));
  EXPECT_EQ(with_outer(own, {2, 2, 2}).factors, (std::vector<int>{2, 2, 2, 4}));
  EXPECT_EQ(node_ranks(own), 4);
  EXPECT_EQ(factors_up_to(12, 4), (std::vector<int>{4, 3}));
  EXPECT_EQ(factors_up_to(7, 2), (std::vector<int>{7}));
}

// The rough estimate may be wrong, but not so much that good plans come late.
TEST(rough_estimate, is_of_the_order_of_the_simulation) {
  const sim::machine m = small_machine();
  for (const std::uint64_t bytes : {1024u, 4194304u}) {
    const problem p = make(kind::allreduce, 16, bytes);
    for (const char* text : {"ring", "exchange(radices=4,4)", "doubling", "tree", "cyclic",
                             "hierarchical(hierarchy=4,4;inner=peer;outer=exchange)"}) {
      const plan::recipe r = plan::recipe_from_text(text);
      const double ratio = rough_estimate(p, r, m).seconds / time_of(p, r, m);
      EXPECT_GT(ratio, 0.25) << text << " " << bytes;
      EXPECT_LT(ratio, 4) << text << " " << bytes;
    }
  }
}

// A ring in channels is a pipeline only where they do not share each link all the time.
TEST(stagger, makes_channels_a_pipeline) {
  const sim::machine m = small_machine();
  const problem p = make(kind::broadcast, 32, 64 << 20);
  plan::recipe r = plan::recipe_from_text("composed(hierarchy=8,4;ring=8;stripe=4;pipeline=16)");
  const double shared = time_of(p, r, m);
  r.stagger = 1;
  const double staggered = time_of(p, r, m);
  EXPECT_LT(staggered, 0.6 * shared);
  EXPECT_TRUE(plan::verify(plan::build(p, r)));
}

TEST(traffic, counts_each_transfer_once) {
  const problem p = make(kind::broadcast, 4, 4096);
  const auto flows = plan::traffic(plan::build(p, plan::recipe_from_text("tree(radices=4)")));
  ASSERT_EQ(flows.size(), 3u);
  for (std::size_t i = 0; i < flows.size(); ++i)
    EXPECT_EQ(flows[i], (plan::flow{0, static_cast<int>(i) + 1, 0, 4096, 1}));
  const auto read = plan::traffic(plan::build(p, plan::recipe_from_text("one_shot")));
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0], (plan::flow{0, 1, 0, 4096, 1}));
}

// As many nodes as there are of Alps and more, of two pairs of ranks that share a port.
sim::machine huge_machine() {
  sim::machine m = small_machine();
  m.levels[0].groups = 4096;
  m.levels[0].ports = 2;
  m.levels[1].groups = 2;
  m.levels.push_back(m.levels[1]);
  return m;
}

TEST(search, finds_and_proves_plans_of_16384_ranks) {
  const sim::machine m = huge_machine();
  for (const kind k :
       {kind::allreduce, kind::allgather, kind::reduce_scatter_block, kind::alltoall}) {
    const problem p = make(k, 16384, 1 << 20);
    ASSERT_TRUE(takes_digits(p, m));
    const search_result result = search(p, m);
    SCOPED_TRACE(plan::to_text(result.best[0].how));
    EXPECT_TRUE(result.best[0].verified);
    EXPECT_TRUE(plan::prove(plan::build_symmetric(p, result.best[0].how)));
    EXPECT_GE(result.best[0].seconds, result.least.seconds);
    EXPECT_LE(result.best[0].seconds, result.best.back().seconds);
  }
}

TEST(search, of_ranks_that_are_not_alike_looks_at_all_of_them) {
  sim::machine m = huge_machine();
  EXPECT_FALSE(takes_digits(make(kind::broadcast, 16384, 1024), m));
  EXPECT_FALSE(takes_digits(make(kind::allgather, 1024, 1024), m));
  EXPECT_TRUE(takes_digits(make(kind::allgather, 8192, 1024), m));
  // The ports are shared by ranks of two pairs.
  m.levels[0].binding = {0, 1, 1, 0};
  m.levels[0].ports = 2;
  EXPECT_TRUE(takes_digits(make(kind::allgather, 16384, 1024), m));
  m.levels[0].binding = {0, 0, 0, 1};
  EXPECT_FALSE(takes_digits(make(kind::allgather, 16384, 1024), m));
}

// Messages between groups of so many neighbours.
int crossing(const problem& p, const char* recipe, int group) {
  int count = 0;
  for (const plan::flow& f : plan::traffic(plan::build(p, plan::recipe_from_text(recipe))))
    count += f.from / group != f.to / group ? static_cast<int>(f.messages) : 0;
  return count;
}

TEST(bine, crosses_fewer_groups_than_the_binomial_tree) {
  for (const int ranks : {16, 32, 64}) {
    int binomial = 0, bine = 0;
    for (int root = 0; root < ranks; ++root)
      for (int group = 3; group < ranks / 2; ++group) {
        problem p = make(kind::broadcast, ranks, 64);
        p.root = root;
        binomial += crossing(p, "tree", group);
        bine += crossing(p, "bine", group);
      }
    EXPECT_LT(bine, 0.95 * binomial) << ranks;
  }
}

// Groups of six nodes, as of a dragonfly, whose links to other groups are the slow ones.
TEST(bine, is_faster_where_links_between_groups_are_slow) {
  sim::machine m = small_machine();
  m.levels[0].groups = 6;
  m.levels[0].ports = 1;
  m.levels[0].binding.clear();
  m.levels[0].port_bandwidth = 2e9;
  m.levels[1].groups = 6;
  const problem p = make(kind::broadcast, 32, 1 << 20);
  EXPECT_LT(time_of(p, plan::recipe_from_text("bine"), m),
            time_of(p, plan::recipe_from_text("tree"), m));
}

}  // namespace
}  // namespace sucl::tune
