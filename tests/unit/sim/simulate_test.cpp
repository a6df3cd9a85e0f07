// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Predictions that can be computed by hand.
#include "sim/simulate.hpp"
#include "base/error.hpp"
#include "plan/algorithms/algorithms.hpp"
#include "plan/serialization/text.hpp"
#include "unit/sim/case.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace sucl::sim {
namespace {

constexpr double near = 1e-9;  // a few steps of simulated time

TEST(simulate, a_message_takes_latency_and_bytes_over_bandwidth) {
  const auto p = simulate(plan_of({send(1) + "fence\n", receive(0) + "fence\n"}), two_levels(2, 1));
  EXPECT_NEAR(p.seconds, 2 * us + 10 * us, near);
  EXPECT_NEAR(p.rank_seconds[0], 12 * us, near);
  EXPECT_NEAR(p.rank_seconds[1], 12 * us, near);
  EXPECT_EQ(p.levels[0].bytes, 100000u);
  EXPECT_EQ(p.levels[0].messages, 1u);
  EXPECT_EQ(p.levels[1].messages, 0u);
}

TEST(simulate, a_message_begins_when_both_sides_are_there) {
  // Rank 1 first copies for 10 us.
  machine m = two_levels(2, 1);
  m.local.copy_rate = 10e9;
  const auto p = simulate(
      plan_of({send(1) + "fence\n", "copy recv+0 send+0 100000\n" + receive(0) + "fence\n"}), m);
  EXPECT_NEAR(p.seconds, 22 * us, near);
}

TEST(simulate, flows_through_one_port_share_it) {
  // Both ranks of node 0 send to node 1 through one port each way: 5 GB/s each.
  const auto s = plan_of(
      {send(2) + "fence\n", send(3) + "fence\n", receive(0) + "fence\n", receive(1) + "fence\n"});
  EXPECT_NEAR(simulate(s, two_levels(2, 2)).seconds, 2 * us + 20 * us, near);
}

TEST(simulate, a_port_for_each_rank_doubles_the_bandwidth) {
  const auto s = plan_of(
      {send(2) + "fence\n", send(3) + "fence\n", receive(0) + "fence\n", receive(1) + "fence\n"});
  machine m = two_levels(2, 2);
  m.levels[0].ports = 2;
  EXPECT_NEAR(simulate(s, m).seconds, 2 * us + 10 * us, near);
  m.levels[0].binding = {1, 1};  // but not if both use the same
  EXPECT_NEAR(simulate(s, m).seconds, 2 * us + 20 * us, near);
}

TEST(simulate, what_a_short_flow_leaves_goes_to_the_long_one) {
  // 50 kB at 5 GB/s takes 10 us; the other has 50 kB left then, which take 5 us at 10 GB/s.
  const auto s = plan_of({send(2, 100000) + "fence\n", send(3, 50000) + "fence\n",
                          receive(0) + "fence\n", receive(1, 0, 50000) + "fence\n"});
  const auto p = simulate(s, two_levels(2, 2));
  EXPECT_NEAR(p.rank_seconds[1], 12 * us, near);
  EXPECT_NEAR(p.rank_seconds[0], 17 * us, near);
}

TEST(simulate, sharing_is_max_min_fair) {
  // 0 and 1 (node 0) send to 4; 2 (node 1) sends to 6. Links of 4 GB/s limit 0 and 1 elsewhere:
  // node 0's port is 10 GB/s, so a third flow 3 -> 6 and 2 -> 6 share the port of 6's node.
  machine m = two_levels(4, 2);
  m.levels[0].transports[0].bandwidth = 4e9;  // one rank sends and gets at most 4 GB/s
  const auto s =
      plan_of({send(4) + "fence\n", send(4) + "fence\n", send(6) + "fence\n", "",
               receive(0) + receive(1, 100000) + "fence\n", "", receive(2) + "fence\n", ""});
  const auto p = simulate(s, m);
  EXPECT_NEAR(p.rank_seconds[0], 2 * us + 50 * us, near);  // half of what rank 4 gets
  EXPECT_NEAR(p.rank_seconds[2], 2 * us + 25 * us, near);  // alone
}

TEST(simulate, both_directions_share_what_is_shared) {
  const auto s = plan_of({send(1) + receive(1) + "fence\n", send(0) + receive(0) + "fence\n"});
  machine m = two_levels(2, 1);
  EXPECT_NEAR(simulate(s, m).seconds, 12 * us, near);
  m.levels[0].port_both = 10e9;
  EXPECT_NEAR(simulate(s, m).seconds, 22 * us, near);
}

TEST(simulate, links_are_between_members) {
  // 0 to 1 and 0 to 2 use different links; twice 0 to 1 shares one.
  machine m = two_levels(1, 3);
  m.levels[1].link_bandwidth = 10e9;
  const auto different =
      plan_of({send(1) + send(2) + "fence\n", receive(0) + "fence\n", receive(0) + "fence\n"});
  EXPECT_NEAR(simulate(different, m).seconds, 11 * us, near);
  const auto same =
      plan_of({send(1) + send(1) + "fence\n", receive(0) + receive(0, 100000) + "fence\n", ""});
  EXPECT_NEAR(simulate(same, m).seconds, 21 * us, near);
}

TEST(simulate, a_fabric_is_shared_by_all) {
  machine m = two_levels(1, 4);
  m.levels[1].fabric_bandwidth = 10e9;
  const auto s = plan_of(
      {send(1) + "fence\n", receive(0) + "fence\n", send(3) + "fence\n", receive(2) + "fence\n"});
  EXPECT_NEAR(simulate(s, m).seconds, 21 * us, near);
}

TEST(simulate, memory_is_read_and_written) {
  machine m = two_levels(1, 2);
  m.local.bandwidth = 10e9;
  const auto copy = plan_of({"copy recv+0 send+0 100000\n", ""});
  EXPECT_NEAR(simulate(copy, m).seconds, 20 * us, near);
  const auto reduce = plan_of({"reduce recv+0 send+0 100000\n", ""});
  EXPECT_NEAR(simulate(reduce, m).seconds, 30 * us, near);
  const auto message = plan_of({send(1) + "fence\n", receive(0) + "fence\n"});
  EXPECT_NEAR(simulate(message, m).seconds, 11 * us, near);
  m.local.shared_by = 2;  // read and written in the same memory
  EXPECT_NEAR(simulate(message, m).seconds, 21 * us, near);
}

TEST(simulate, reduces_to_one_address_are_one_kernel) {
  machine m = two_levels(1, 2);
  m.local.launch_latency = 3 * us;
  m.local.launch_overhead = 1 * us;
  m.local.bandwidth = 10e9;
  const std::string one = "reduce recv+0 scratch+0 10000\n";
  const auto together = plan_of({one + "reduce recv+0 scratch+10000 10000\n", ""});
  // Two sources and the destination are read, the destination is written: 40 kB.
  EXPECT_NEAR(simulate(together, m).seconds, 4 * us + 4 * us, near);
  const auto apart = plan_of({one + "reduce recv+10000 scratch+10000 10000\n", ""});
  EXPECT_NEAR(simulate(apart, m).seconds, 2 * (4 * us + 3 * us), near);
}

TEST(simulate, the_work_of_a_rank_is_done_one_after_another) {
  machine m = two_levels(2, 1);
  m.levels[0].transports[0].overhead = 1 * us;
  // The second send is submitted at 2 us; the second receive too.
  const auto s = plan_of(
      {send(1, 10) + send(1, 10) + "fence\n", receive(0, 0, 10) + receive(0, 10, 10) + "fence\n"});
  EXPECT_NEAR(simulate(s, m).seconds, 2 * us + 2 * us + 1e-9, 3e-9);
}

TEST(simulate, a_kernel_reads_the_peers_memory_through_the_link) {
  machine m = two_levels(1, 2);
  m.levels[1].link_bandwidth = 10e9;
  m.local.copy_rate = 5e9;
  const auto s = plan_of({"copy 1 recv+0 peer.send+0 100000\n", ""});
  EXPECT_NEAR(simulate(s, m).seconds, 1 * us + 20 * us, near);
  m.local.copy_rate = 0;
  EXPECT_NEAR(simulate(s, m).seconds, 1 * us + 10 * us, near);
}

TEST(simulate, a_signal_takes_the_latency) {
  machine m = two_levels(2, 1);
  m.levels[0].transports[0].overhead = 0.5 * us;
  const auto s = plan_of({"signal 1 flag 0\nwait 1 flag 1\n", "wait 0 flag 0\nsignal 0 flag 1\n"});
  EXPECT_NEAR(simulate(s, m).seconds, 2 * 2.5 * us, near);
}

TEST(simulate, put_and_get_need_no_partner) {
  const auto put = plan_of({"put 1 peer.scratch+0 send+0 100000\nfence\n", ""});
  EXPECT_NEAR(simulate(put, two_levels(2, 1)).seconds, 12 * us, near);
  const auto get = plan_of({"get 1 scratch+0 peer.send+0 100000\nfence\n", ""});
  const auto p = simulate(get, two_levels(2, 1), {.matrix = true});
  EXPECT_NEAR(p.seconds, 12 * us, near);
  ASSERT_EQ(p.matrix.size(), 1u);
  EXPECT_EQ(p.matrix[0].from, 1);
  EXPECT_EQ(p.matrix[0].to, 0);
}

TEST(simulate, a_fence_leaves_the_latest) {
  const auto s =
      plan_of({send(1, 100000) + send(1, 50000) + "fence 1\ncopy recv+0 send+0 4\nfence\n",
               receive(0) + receive(0, 100000, 50000) + "fence\n"});
  const auto p = simulate(s, two_levels(2, 1), {.timeline = true});
  const auto& rank = p.timeline[0][0];
  EXPECT_NEAR(rank[2].end, 17 * us, near);  // 50 kB each at 5 GB/s, then 50 kB at 10 GB/s
  EXPECT_NEAR(rank[1].end, 12 * us, near);
  EXPECT_NEAR(rank[0].end, 17 * us, near);
  EXPECT_NEAR(rank[3].start, 17 * us, near);
}

TEST(simulate, says_where_bytes_went) {
  const auto s = plan_of(
      {send(2) + "fence\n", send(3) + "fence\n", receive(0) + "fence\n", receive(1) + "fence\n"});
  const auto p = simulate(s, two_levels(2, 2), {.matrix = true, .usage = true});
  ASSERT_EQ(p.uses.size(), 2u);
  EXPECT_EQ(p.uses[0].what, usage::part::port_out);
  EXPECT_EQ(p.uses[0].member, 0);
  EXPECT_EQ(p.uses[0].bytes, 200000);
  EXPECT_NEAR(p.uses[0].utilisation(p.seconds), 20.0 / 22.0, 1e-3);
  EXPECT_EQ(p.uses[1].what, usage::part::port_in);
  EXPECT_EQ(p.uses[1].member, 1);
  ASSERT_EQ(p.matrix.size(), 2u);
  EXPECT_EQ(p.matrix[1].from, 1);
  EXPECT_EQ(p.matrix[1].to, 3);
  EXPECT_EQ(p.matrix[1].bytes, 100000u);
}

TEST(simulate, transports_have_their_own_costs) {
  machine m = two_levels(2, 1);
  m.levels[0].transports.push_back({"nccl", 5 * us, 0, 5e9});
  auto s = plan_of({send(1) + "fence\n", receive(0) + "fence\n"});
  s.levels[0].via = "nccl";
  EXPECT_NEAR(simulate(s, m).seconds, 25 * us, near);
  s.levels[0].via = "ncl";
  try {
    simulate(s, m);
    FAIL();
  } catch (const error& e) {
    EXPECT_NE(std::string(e.hint()).find("nccl"), std::string::npos) << e.what();
  }
}

TEST(simulate, refuses_what_cannot_run) {
  EXPECT_THROW(simulate(plan_of({"", "", ""}), two_levels(2, 1)), error);  // too many ranks
  const auto stuck = plan_of({receive(1) + "fence\n", ""});
  try {
    simulate(stuck, two_levels(2, 1));
    FAIL();
  } catch (const error& e) {
    EXPECT_NE(std::string(e.message()).find("never ends: rank 0"), std::string::npos) << e.what();
  }
}

TEST(simulate, a_ring_takes_its_formula) {
  // Reduce-scatter and allgather: 2 (p - 1) steps of latency and a p-th of the bytes.
  constexpr int ranks = 8;
  plan::problem p;
  p.ranks = ranks;
  p.element_bytes = 4;
  p.counts = {1 << 20};
  const auto s = plan::build(p, plan::recipe_from_text("ring"));
  const double chunk = 4.0 * (1 << 20) / ranks / 10e9;
  EXPECT_NEAR(simulate(s, two_levels(ranks, 1)).seconds, 2 * (ranks - 1) * (2 * us + chunk), 1e-8);
}

// Thousands of flows at once, which start one by one: their rates are settled now and then only.
TEST(simulate, many_flows_fill_a_port) {
  constexpr int ranks = 64;
  machine m = two_levels(ranks, 1);
  m.levels[0].transports[0].overhead = 0.5 * us;
  plan::problem p;
  p.kind = kind::allgather;
  p.ranks = ranks;
  p.element_bytes = 4;
  p.counts = {100000};
  const auto s = plan::build(p, plan::recipe_from_text("direct"));
  const double full = (ranks - 1) * 400000.0 / 10e9;
  EXPECT_NEAR(simulate(s, m).seconds, full, 0.03 * full);
}

// A bound on the time cuts what takes longer, and nothing else, whatever is the busiest part.
TEST(simulate, gives_up_what_takes_too_long_and_nothing_else) {
  machine m = two_levels(4, 4);
  m.levels[1].transports[0].bandwidth = 40e9;
  m.levels[1].transports[0].overhead = 0.3 * us;
  m.local.bandwidth = 200e9;
  m.local.reduce_rate = 60e9;
  m.local.copy_rate = 90e9;
  m.local.launch_latency = 2 * us;
  for (const char* how :
       {"ring(pipeline=4)", "exchange(radices=4,4)", "doubling", "one_shot", "cyclic",
        "tree(radices=2)", "hierarchical(hierarchy=4,4;pipeline=8;inner=peer;outer=ring)",
        "composed(hierarchy=4,4;stripe=4;ring=4;steps=3;pipeline=8;stagger=1)"})
    for (const std::uint64_t count : {16u, 40000u, 4000000u}) {
      plan::problem p;
      p.kind = kind::allreduce;
      p.ranks = 16;
      p.counts = {count};
      const plan::schedule s = plan::build(p, plan::recipe_from_text(how));
      const double seconds = simulate(s, m).seconds;
      simulate_options o;
      o.max_seconds = seconds * 1.0001;
      const prediction whole = simulate(s, m, o);
      EXPECT_FALSE(whole.gave_up) << how << " " << count;
      EXPECT_EQ(whole.seconds, seconds) << how << " " << count;
      o.max_seconds = seconds * 0.9999;
      EXPECT_TRUE(simulate(s, m, o).gave_up) << how << " " << count;
    }
}

TEST(simulate, gives_up_before_it_begins_where_bytes_alone_take_too_long) {
  simulate_options o;
  o.max_seconds = 9 * us;
  const auto p =
      simulate(plan_of({send(1) + "fence\n", receive(0) + "fence\n"}), two_levels(2, 1), o);
  EXPECT_TRUE(p.gave_up);
  EXPECT_EQ(p.events, 0u);
}

// Thousands of ranks are affordable: tree-like plans, and one with many messages at once. Ranks of
// one kind are simulated once.
TEST(simulate, thousands_of_ranks_take_little_work) {
  plan::problem p;
  p.ranks = 4096;
  p.element_bytes = 4;
  p.counts = {1 << 20};
  const std::pair<const char*, std::uint64_t> most[] = {
      {"exchange", 400},
      {"hierarchical(hierarchy=512,4,2;outer=exchange)", 400},
      {"cyclic", 2'000'000}};
  for (const auto& [recipe, work] : most) {
    const auto s = plan::build(p, plan::recipe_from_text(recipe));
    const auto found = simulate(s, load_machine("frontier"));
    EXPECT_GT(found.seconds, 0) << recipe;
    EXPECT_LT(found.work, work) << recipe;
  }
}

}  // namespace
}  // namespace sucl::sim
