// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sim/model/machine.hpp"
#include "base/error.hpp"
#include "plan/algorithms/algorithms.hpp"
#include "sim/simulate.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

namespace sucl::sim {
namespace {

constexpr const char* small = R"(name = "small"
summary = "two nodes"

[[level]]
name = "network"
groups = 2
ports = 2
binding = "packed"
port_bandwidth = 10.0

[[level.transport]]
name = "mpi"
latency = 2.5

[[level]]
name = "node"
groups = 4
link_bandwidth = 50

[[level.transport]]
name = "ipc"
latency = 1.0
overhead = 0.5
bandwidth = 40.0

[memory]
bandwidth = 100.0
shared_by = 4
reduce_rate = 20.0
)";

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = small;
  text.replace(text.find(from), from.size(), to);
  return text;
}

// The whole error: message and cure.
std::string refusal(const std::string& text) {
  try {
    machine_from_toml(text, "m.toml");
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::configuration);
    return e.what();
  }
  return "no error";
}

void expect_refusal(const std::string& text, const std::string& location, const std::string& part) {
  const std::string said = refusal(text);
  EXPECT_NE(said.find("m.toml:" + location), std::string::npos) << said;
  EXPECT_NE(said.find(part), std::string::npos) << said;
}

TEST(machine_file, is_read_in_its_units) {
  const machine m = machine_from_toml(small, "m.toml");
  EXPECT_EQ(m.name, "small");
  ASSERT_EQ(m.levels.size(), 2u);
  EXPECT_EQ(m.levels[0].binding, (std::vector<std::int32_t>{0, 0, 1, 1}));
  EXPECT_DOUBLE_EQ(m.levels[0].port_bandwidth, 10e9);
  EXPECT_DOUBLE_EQ(m.levels[0].transports[0].latency, 2.5e-6);
  EXPECT_DOUBLE_EQ(m.levels[1].link_bandwidth, 50e9);
  EXPECT_DOUBLE_EQ(m.levels[1].transports[0].overhead, 0.5e-6);
  EXPECT_DOUBLE_EQ(m.levels[1].transports[0].bandwidth, 40e9);
  EXPECT_EQ(m.local.shared_by, 4);
  EXPECT_EQ(m.local.copy_rate, 0);
  EXPECT_EQ(rank_count(m), 8);
}

TEST(machine_file, is_written_as_it_is_read) {
  const machine m = machine_from_toml(small, "m.toml");
  EXPECT_EQ(machine_from_toml(to_toml(m), "again"), m);
  EXPECT_EQ(to_toml(machine_from_toml(to_toml(m), "again")), to_toml(m));
}

TEST(machine_file, binds_ports_in_turn_or_as_listed) {
  const auto binding = [](const std::string& how) {
    return machine_from_toml(replaced("\"packed\"", how), "m.toml").levels[0].binding;
  };
  EXPECT_EQ(binding("\"round_robin\""), (std::vector<std::int32_t>{0, 1, 0, 1}));
  EXPECT_EQ(binding("[1, 1, 1, 0]"), (std::vector<std::int32_t>{1, 1, 1, 0}));
}

TEST(machine_file, says_where_it_is_wrong) {
  expect_refusal(replaced("latency = 2.5", "latencey = 2.5"), "13:1", "Did you mean 'latency'?");
  expect_refusal(replaced("port_bandwidth", "port_bandwith"), "9:1", "'port_bandwidth'");
  expect_refusal(replaced("[memory]", "[memry]"), "26:2", "'memory'");
  expect_refusal(replaced("shared_by = 4", "shared = 4"), "28:1", "memory.shared");
  expect_refusal(replaced("groups = 2", "groups = \"two\""), "6:10", "level[0].groups");
  expect_refusal(replaced("latency = 2.5", "latency = -1"), "13:11",
                 "latency = -1 is out of range");
  expect_refusal(replaced("latency = 2.5", "latency = nan"), "13:11",
                 "latency = nan is out of range");
  expect_refusal(replaced("\"packed\"", "\"paked\""), "8:11", "round_robin");
  expect_refusal(replaced("[[level]]", "[level]"), "", "level");
  expect_refusal("name = ", "1:", "not TOML");
}

TEST(machine_file, refuses_figures_that_make_no_sense) {
  EXPECT_NE(refusal(replaced("\"packed\"", "[0, 1]")).find("binds 2 ranks"), std::string::npos);
  EXPECT_NE(refusal(replaced("\"packed\"", "[0, 1, 2, 0]")).find("binding = 2 is out of range"),
            std::string::npos);
  EXPECT_NE(refusal("name = \"empty\"").find("no levels"), std::string::npos);
  EXPECT_NE(refusal(replaced("groups = 2", "groups = 1048576")).find("more than 1048576 ranks"),
            std::string::npos);
}

constexpr const char* wired = R"(name = "wired"
[graph]
ranks = 2
copies = 2
overhead = 0.5
switches = ["hub"]
common = ["net"]
[[graph.link]]
both = [[0, "hub"], [1, "hub"]]
bandwidth = 100.0
latency = 0.25
[[graph.link]]
one_way = [[1, "net"]]
bandwidth = 12.5
[[graph.link]]
of = "machine"
one_way = [["net", 0], ["net", 2]]
bandwidth = 12.5
latency = 2.0
)";

std::string rewired(const std::string& from, const std::string& to) {
  std::string text = wired;
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(machine_file, wires_are_those_of_all_copies) {
  const machine m = machine_from_toml(wired, "m.toml");
  EXPECT_EQ(rank_count(m), 4);
  EXPECT_EQ(m.wires.switches, (std::vector<std::string>{"hub.0", "hub.1", "net"}));
  ASSERT_EQ(m.wires.links.size(), 12u);
  EXPECT_EQ(m.wires.links[0], (link{0, 4, 100e9, 0.25e-6}));
  EXPECT_EQ(m.wires.links[2], (link{2, 5, 100e9, 0.25e-6}));
  EXPECT_EQ(m.wires.links[9], (link{3, 6, 12.5e9, 0}));
  EXPECT_EQ(m.wires.links[11], (link{6, 2, 12.5e9, 2e-6}));
  EXPECT_DOUBLE_EQ(m.levels[1].transports[0].overhead, 0.5e-6);
  EXPECT_EQ(node_name(m, 3), "3");
  EXPECT_EQ(node_name(m, 6), "net");
  EXPECT_EQ(machine_from_toml(to_toml(m), "again"), m);
  EXPECT_EQ(to_toml(machine_from_toml(to_toml(m), "again")), to_toml(m));
}

TEST(machine_file, says_what_is_wrong_with_wires) {
  expect_refusal(rewired("bandwidth = 12.5", "bandwith = 12.5"), "14:1", "'bandwidth'");
  expect_refusal(rewired("bandwidth = 12.5", "bandwidth = 0"), "14:13", "out of range");
  expect_refusal(rewired("latency = 2.0", "latency = 1e9"), "19:11", "out of range");
  expect_refusal(rewired("[1, \"net\"]", "[2, \"net\"]"), "13:13", "from 0 to 1");
  expect_refusal(rewired("[1, \"net\"]", "[1, \"nett\"]"), "13:16", "Did you mean 'net'?");
  expect_refusal(rewired("[1, \"net\"]", "[1, 1]"), "13:12", "two different nodes");
  expect_refusal(rewired("[[1, \"net\"]]", "[1]"), "13:12", "pairs");
  expect_refusal(rewired("\"machine\"", "\"all\""), "16:6", "\"copy\"");
  expect_refusal(rewired("ranks = 2", "ranks = 0"), "3:9", "from 1 to 1048576");
  expect_refusal(rewired("copies = 2", "copies = 1048576"), "2:1", "too many nodes");
  expect_refusal(rewired("common = [\"net\"]", "common = [\"7\"]"), "", "no number");
  expect_refusal(rewired("ranks = 2\n", ""), "2:1", "graph.ranks is missing");
  expect_refusal("name = \"m\"\n[graph]\nranks = 2\n", "2:1", "no links");
  expect_refusal(rewired("[graph]", "[[level]]\n[graph]"), "", "levels and a graph");
}

// What a number of a file may be: one value beyond each end, and what the error says of it.
TEST(machine_file, every_number_has_a_range) {
  struct wrong {
    const char *key, *value, *range;
  };
  const auto text_with = [](const char* key, const char* value) {
    const std::string name = key;
    const auto in = [&](const char* table) { return name.find(table) != std::string::npos; };
    const std::string bare = name.substr(name.rfind('.') + 1) + " = " + value + "\n";
    return "name = \"m\"\n[[level]]\n" + (in("level.") ? bare : "") +
           "[[level.transport]]\nname = \"t\"\n" + (in("transport.") ? bare : "") + "[memory]\n" +
           (in("memory.") ? bare : "");
  };
  const char *ranks = "from 1 to 1048576", *ports = "from 1 to 1024", *times = "from 0 to 1e+08",
             *rates = "from 0 to 1e+06", *least = "from 1e-06 to 1e+06";
  std::vector<wrong> all;
  for (const char* key : {"level.groups", "memory.shared_by"})
    for (const char* value : {"0", "-1", "1048577", "2147483648", "9223372036854775807"})
      all.push_back({key, value, ranks});
  for (const char* value : {"0", "1025", "2147483647"})
    all.push_back({"level.ports", value, ports});
  for (const char* key : {"transport.latency", "transport.overhead", "memory.launch_latency",
                          "memory.launch_overhead"})
    for (const char* value : {"-0.5", "100000001", "29223372036854775808.0", "inf", "nan"})
      all.push_back({key, value, times});
  for (const char* key :
       {"level.port_bandwidth", "level.port_both", "level.link_bandwidth", "level.fabric_bandwidth",
        "transport.bandwidth", "memory.bandwidth", "memory.copy_rate", "memory.reduce_rate"}) {
    for (const char* value : {"-1", "1000001", "1e300", "inf", "nan"})
      all.push_back({key, value, rates});
    all.push_back({key, "1e-300", least});
  }
  for (const wrong& w : all) {
    const std::string said = refusal(text_with(w.key, w.value));
    const std::string name = std::string(w.key).substr(std::string(w.key).rfind('.') + 1);
    EXPECT_NE(said.find(name + " = "), std::string::npos) << said;
    EXPECT_NE(said.find("is out of range [configuration]. Write a number "), std::string::npos)
        << w.key << " = " << w.value << ": " << said;
    EXPECT_NE(said.find(w.range), std::string::npos) << w.key << ": " << said;
    EXPECT_NE(said.find("m.toml:"), std::string::npos) << said;
  }
}

TEST(machine_file, what_is_allowed_can_be_simulated) {
  const machine m = machine_from_toml(
      "name = \"m\"\n[[level]]\ngroups = 1048576\nports = 1024\nbinding = \"round_robin\"\n"
      "port_bandwidth = 1e-6\n[[level.transport]]\nname = \"t\"\nlatency = 1e8\noverhead = 1e8\n"
      "[memory]\nlaunch_overhead = 1e8\n",
      "m.toml");
  plan::problem p;
  p.kind = kind::allreduce;
  p.ranks = 16;
  p.element_bytes = 4;
  p.counts = {64};
  EXPECT_GT(simulate(plan::build(p, plan::recipe_from_text("ring")), m).seconds, 100);
  p.counts = {std::uint64_t{1} << 50};
  try {
    simulate(plan::build(p, plan::recipe_from_text("ring")), m);
    ADD_FAILURE() << "it takes longer than the clock counts";
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find("takes more than"), std::string::npos) << e.what();
  }
}

TEST(machine, knows_where_ranks_meet) {
  const machine m = machine_from_toml(small, "m.toml");
  EXPECT_EQ(common_level(m, 0, 3), 1u);
  EXPECT_EQ(common_level(m, 3, 4), 0u);
  EXPECT_EQ(common_level(m, 6, 5), 1u);
  EXPECT_EQ(member_ranks(m, 0), 4);
  EXPECT_EQ(member_ranks(m, 1), 1);
}

TEST(machine, gives_hierarchies_for_fewer_ranks) {
  const machine m = load_machine("frontier");
  const hierarchy all = hierarchy_of(m, 32);
  EXPECT_EQ(all.factors, (std::vector<int>{4, 4, 2}));
  EXPECT_EQ(all.vias, (std::vector<std::string>{"mpi", "ipc", "ipc"}));
  EXPECT_EQ(hierarchy_of(m, 8).factors, (std::vector<int>{4, 2}));
  EXPECT_EQ(hierarchy_of(m, 8).levels, (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(hierarchy_of(m, 2).factors, (std::vector<int>{2}));
  EXPECT_EQ(hierarchy_of(m, 30).factors, (std::vector<int>{4, 4, 2}));  // one node is not full
  EXPECT_TRUE(hierarchy_of(m, 1).factors.empty());
  EXPECT_THROW(hierarchy_of(m, 1 << 30), error);
}

TEST(machine, shipped_ones_are_right) {
  std::vector<std::string> names;
  for (const machine_summary& s : shipped_machines()) {
    if (s.name == "this") continue;
    names.push_back(s.name);
    const machine m = load_machine(s.name);
    EXPECT_EQ(m.name, s.name);
    EXPECT_EQ(m, load_machine(s.file));
    EXPECT_FALSE(s.summary.empty());
    EXPECT_GE(s.ranks, 15);
    if (!m.wires.empty()) continue;  // published graphs say nothing of memory
    EXPECT_GT(m.local.reduce_rate, 0);
    for (const level& l : m.levels)
      for (const transport& t : l.transports) EXPECT_GT(t.latency, 0) << s.name;
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"a100-x2", "alps", "aurora", "delta", "dgx-h100", "dgx-h200",
                                      "dgx2-x2", "frontier", "h100-x2", "mi250-x2", "ndv2-x2",
                                      "ndv2-x4", "perlmutter", "stampede3-pvc"}));
}

// Table 4 of the HiCCL paper: bandwidth of a node.
TEST(machine, shipped_ones_have_the_papers_networks) {
  const auto node_bandwidth = [](const char* name) {
    const level network = load_machine(name).levels[0];
    return network.ports * network.port_bandwidth / 1e9;
  };
  EXPECT_DOUBLE_EQ(node_bandwidth("delta"), 25);
  EXPECT_DOUBLE_EQ(node_bandwidth("perlmutter"), 100);
  EXPECT_DOUBLE_EQ(node_bandwidth("frontier"), 100);
  EXPECT_DOUBLE_EQ(node_bandwidth("aurora"), 200);
}

TEST(machine, unknown_ones_are_refused_with_the_nearest) {
  try {
    load_machine("frontiers");
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    EXPECT_NE(std::string(e.hint()).find("frontier"), std::string::npos);
  }
  EXPECT_THROW(load_machine("./absent.toml"), error);
  EXPECT_THROW(load_machine("/"), error);
}

TEST(machine, this_one_is_measured_and_kept) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "sucl_this_machine";
  std::filesystem::remove_all(folder);
  ::setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  EXPECT_THROW(load_machine("this"), error);
  const machine m = measure_this_machine(4);
  EXPECT_EQ(rank_count(m), 4);
  EXPECT_GT(m.local.bandwidth, 0);
  EXPECT_GT(m.local.copy_rate, 0);
  EXPECT_GT(m.local.reduce_rate, 0);
  EXPECT_GT(m.levels[0].transports[0].latency, 0);
  // A call of the rank itself, not a kernel in a queue: it costs something, but nothing waits.
  EXPECT_GT(m.local.launch_overhead, 0);
  EXPECT_EQ(m.local.launch_latency, 0);
  EXPECT_EQ(write_this_machine(m), this_machine_file());
  EXPECT_EQ(load_machine("this").levels[0].groups, 4);
  EXPECT_NEAR(load_machine("this").local.launch_overhead, m.local.launch_overhead,
              0.01 * m.local.launch_overhead);
  EXPECT_EQ(shipped_machines().back().name, "this");
  std::filesystem::remove_all(folder);
  ::unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace sucl::sim
