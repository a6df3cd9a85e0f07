// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Topologies of other projects.
#include "sim/model/topology_json.hpp"

#include <sucl/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace sucl::sim {
namespace {

machine read(const std::string& text) { return machine_from_json(text, "folder/some.json"); }

std::string problem_with(const std::string& text) {
  try {
    read(text);
  } catch (const error& e) {
    return e.what();
  }
  return "nothing";
}

void expect_problem(const std::string& text, const std::string& part) {
  EXPECT_NE(problem_with(text).find(part), std::string::npos)
      << problem_with(text) << "\nof " << text;
}

// Two GPUs at a switch, one of them by a NIC as well.
std::string two_gpus(const std::string& more = "") {
  return R"({"directed": true, "nodes": [{"id": [0, "GPU", 0]}, {"id": [0, "sw", 0]},
              {"id": [0, "GPU", 1]}, {"id": [0, "nic", 0]}, {"id": [1, "GPU", 0]}],
             "links": [
              {"source": [0, "GPU", 0], "target": [0, "sw", 0], "capacity": 300},
              {"source": [0, "sw", 0], "target": [0, "GPU", 0], "capacity": 300},
              {"source": [0, "GPU", 1], "target": [0, "sw", 0], "capacity": 200},
              {"source": [0, "sw", 0], "target": [1, "GPU", 0], "capacity": 100},
              {"source": [0, "GPU", 1], "target": [0, "nic", 0], "capacity": 50, "latency": 2},
              {"source": [0, "nic", 0], "target": [1, "GPU", 0], "capacity": 25, "latency": 1}
              )" +
         more + "]}";
}

TEST(topology_json, reads_graphs_of_networkx) {
  const machine m = read(two_gpus());
  EXPECT_EQ(m.name, "some");
  EXPECT_EQ(rank_count(m), 3);
  EXPECT_EQ(m.wires.switches, (std::vector<std::string>{"0.sw.0"}));
  // The NIC is the link between its two neighbours: the slower one's rate, both latencies.
  const std::vector<link> expected{
      {0, 3, 300e9, 0}, {3, 0, 300e9, 0}, {3, 2, 100e9, 0}, {1, 2, 25e9, 3e-6}, {1, 3, 200e9, 0}};
  ASSERT_EQ(m.wires.links.size(), expected.size());
  for (const link& l : expected)
    EXPECT_NE(std::find(m.wires.links.begin(), m.wires.links.end(), l), m.wires.links.end())
        << l.from << " to " << l.to;
}

TEST(topology_json, takes_the_ranks_that_are_listed) {
  const machine m = read(
      R"({"compute_nodes": ["a", "b"], "nodes": [{"id": "b"}, {"id": "a"}, {"id": "GPU"}],
          "directed": false, "edges": [{"source": "a", "target": "b", "capacity": 4}]})");
  EXPECT_EQ(rank_count(m), 2);
  EXPECT_EQ(m.wires.links, (std::vector<link>{{0, 1, 4e9, 0}, {1, 0, 4e9, 0}}));
}

TEST(topology_json, reads_matrices_of_chunks) {
  // Rank 1 is behind switch 0; chunks of half a GB.
  const machine m = read(
      R"({"chunk_size": 0.5, "switch_indices": [0],
          "capacity": [[0, 20, 20, 2], [20, 0, 0, 0], [20, 0, 0, 10], [2, 0, 0, 0]],
          "alpha": [[0, 1e-6, 1e-6, 2e-6], [1e-6, 0, 0, 0], [1e-6, 0, 0, 3e-6], [2e-6, 0, 0, 0]]})");
  EXPECT_EQ(rank_count(m), 3);
  EXPECT_EQ(m.wires.switches, (std::vector<std::string>{"node0"}));
  EXPECT_EQ(m.wires.links.size(), 7u);
  EXPECT_NE(std::find(m.wires.links.begin(), m.wires.links.end(), link{1, 2, 5e9, 3e-6}),
            m.wires.links.end());
}

// Servers of two GPUs, each with a NIC that is a device of its own, and a switch.
std::string servers(const std::string& edge, const std::string& gpus = "2") {
  return R"({"devices": [
    {"name": "card", "components": [{"name": "chip", "count": 1, "choice": "nic"},
                                    {"name": "port", "count": 1, "choice": "port"}],
     "links": [{"name": "in", "physical": {"bandwidth": {"gigabytes_per_second": 60}}}],
     "edges": [{"ep1": {"component": "chip[0]"}, "ep2": {"component": "port"},
                "scheme": "one2one", "link": "in"}]},
    {"name": "server", "components": [{"name": "gpu", "count": )" +
         gpus + R"(, "choice": "xpu"},
       {"name": "bridge", "count": 1, "choice": "switch"}, {"name": "cpu", "count": 1, "choice": "cpu"},
       {"name": "card", "count": 2, "choice": "device"}],
     "links": [{"name": "fast", "physical": {"bandwidth": {"gigabits_per_second": 800},
                                             "latency": {"ns": 500}}},
               {"name": "pcie", "physical": {"bandwidth": {"gigatransfers_per_second": 16}}}],
     "edges": [{"ep1": {"component": "gpu"}, "ep2": {"component": "bridge"},
                "scheme": "many2many", "link": "fast"},
               {"ep1": {"component": "cpu"}, "ep2": {"component": "bridge"},
                "scheme": "many2many", "link": "fast"},
               {"ep1": {"component": "gpu[0:2]"}, "ep2": {"component": "card[0:2].chip[0]"},
                "scheme": "one2one", "link": "pcie"}]},
    {"name": "fabric", "components": [{"name": "port", "count": 4, "choice": "port"},
                                      {"name": "asic", "count": 1, "choice": "switch"}],
     "links": [{"name": "in", "physical": {"bandwidth": {"gigabytes_per_second": 100}}}],
     "edges": [{"ep1": {"component": "port"}, "ep2": {"component": "asic"},
                "scheme": "many2many", "link": "in"}]}],
   "instances": [{"name": "host", "device": "server", "count": 2},
                 {"name": "sw", "device": "fabric", "count": 1}],
   "links": [{"name": "eth", "physical": {"bandwidth": {"gigabits_per_second": 400}}}],
   "edges": [)" +
         edge + "]}";
}

const std::string to_switch =
    R"({"ep1": {"instance": "host[0:2]", "component": "card[0:2].port[0]"},
        "ep2": {"instance": "sw", "component": "port[0:4]"}, "scheme": "one2one", "link": "eth"})";

TEST(topology_json, reads_infrastructures) {
  const machine m = read(servers(to_switch));
  EXPECT_EQ(rank_count(m), 4);
  // The switch; bridges, ports and NICs are links, the processors lead nowhere.
  EXPECT_EQ(m.wires.switches, (std::vector<std::string>{"sw.0.asic.0"}));
  for (std::int32_t r = 0; r < 4; ++r) {
    const link out{r, 4, 32e9, 0};
    EXPECT_NE(std::find(m.wires.links.begin(), m.wires.links.end(), out), m.wires.links.end()) << r;
  }
  const auto pair = std::find_if(m.wires.links.begin(), m.wires.links.end(),
                                 [](const link& l) { return l.from == 0 && l.to == 1; });
  ASSERT_NE(pair, m.wires.links.end());
  EXPECT_EQ(pair->bandwidth, 100e9);
  EXPECT_NEAR(pair->latency, 1e-6, 1e-12);
}

TEST(topology_json, says_what_is_wrong) {
  expect_problem("{", "it is no JSON of a topology");
  expect_problem("[]", "it is no JSON of a topology");
  expect_problem(std::string(100000, '['), "it is no JSON of a topology");
  expect_problem("{}", "it has neither \"nodes\", \"capacity\" nor \"devices\"");
  expect_problem(R"({"nodes": 3, "links": []})", "\"nodes\" is no list");
  expect_problem(R"({"nodes": [{"id": "GPU0"}], "links": []})", "no links join its ranks");
  expect_problem(R"({"nodes": [{"id": "a"}], "links": []})", "no node is a rank");
  expect_problem(R"({"nodes": [{"id": "GPU"}, {"id": "GPU"}], "links": []})",
                 "two nodes are called");
  expect_problem(R"({"nodes": [{"id": {}}], "links": []})", "an id is no text");
  expect_problem(two_gpus(R"(, {"source": "x", "target": [0, "GPU", 0], "capacity": 1})"),
                 "links[6]: there is no node 'x'");
  expect_problem(two_gpus(R"(, {"source": "x", "capacity": 1e9})"), "capacity = ");
  expect_problem(two_gpus(R"(, {"source": "x", "capacity": -1})"), "out of range");
  expect_problem(two_gpus(R"(, {"source": "x", "capacity": "1"})"), "\"capacity\" is no number");
  expect_problem(R"({"compute_nodes": ["z"], "nodes": [{"id": "a"}], "links": []})",
                 "\"compute_nodes\": there is no node 'z'");
  expect_problem(R"({"capacity": [[0, 1]], "alpha": [[0]]})", "it is not a matrix of 1 by 1");
  expect_problem(R"({"capacity": [[0, 1], [1, 0]], "alpha": [[0, 1]]})", "\"alpha\": it is not a");
  expect_problem(R"({"capacity": [[0, 1], [1, 0]], "alpha": [[0, -1], [1, 0]]})", "alpha = -1");
  expect_problem(R"({"capacity": [[0, 1], [1, 0]], "alpha": [[0, 0], [0, 0]],
                     "switch_indices": [2]})",
                 "switch_indices = 2");
}

TEST(topology_json, says_what_is_wrong_with_an_infrastructure) {
  const auto damaged = [](std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  const std::string right = servers(to_switch);
  expect_problem(damaged(right, "host[0:2]", "host[0:3]"), "there are 2 instances 'host'");
  expect_problem(damaged(right, "host[0:2]", "guest"), "there is no instance 'guest'");
  expect_problem(damaged(right, "port[0:4]", "port[4:5]"), "component 'port' has 4 parts");
  expect_problem(damaged(right, "port[0:4]", "port[x]"), "is no component with its indices");
  expect_problem(damaged(right, "port[0:4]", "hole"), "there is no component 'hole'");
  expect_problem(damaged(right, "port[0:4]", "port.asic"), "there is no component 'asic'");
  expect_problem(damaged(right, "\"link\": \"eth\"", "\"link\": \"air\""), "link 'air'");
  expect_problem(damaged(right, "\"device\": \"fabric\"", "\"device\": \"cloth\""),
                 "there is no device 'cloth'");
  expect_problem(damaged(right, "\"gigabits_per_second\": 400", "\"other\": 400"),
                 "it has no bandwidth");
  expect_problem(damaged(right, "many2many", "ring"), "scheme 'ring' is not known");
  expect_problem(damaged(right, "\"name\": \"chip\", \"count\": 1, \"choice\": \"nic\"",
                         "\"name\": \"server\", \"count\": 1, \"choice\": \"device\""),
                 "devices contain each other");
  expect_problem(servers(to_switch, "100000"), "count = ");
  expect_problem(servers(to_switch, "-1"), "count = ");
}

}  // namespace
}  // namespace sucl::sim
