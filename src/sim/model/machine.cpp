// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sim/model/machine.hpp"

#include "base/error.hpp"

#include <algorithm>

namespace sucl::sim {
namespace {

[[noreturn]] void wrong(const machine& m, const std::string& what, const std::string& cure) {
  base::fail(errc::invalid_argument, "the machine '" + m.name + "' is described wrongly: " + what,
             cure);
}

void check_level(const machine& m, std::size_t index) {
  const level& l = m.levels[index];
  const std::string where = "level '" + l.name + "' ";
  if (l.groups < 1) wrong(m, where + "has no groups", "Give groups = 1 or more.");
  if (l.ports < 1) wrong(m, where + "has no ports", "Give ports = 1 or more.");
  if (l.transports.size() > max_transports)
    wrong(m, where + "has " + std::to_string(l.transports.size()) + " transports",
          "Give at most " + std::to_string(max_transports) + ".");
  if (l.transports.empty())
    wrong(m, where + "has no transport", "Add a [[level.transport]] with its name and latency.");
  const auto ranks = static_cast<std::uint64_t>(member_ranks(m, index));
  if (!l.binding.empty() && l.binding.size() != ranks)
    wrong(m,
          where + "binds " + std::to_string(l.binding.size()) +
              " ranks to ports, but a member has " + std::to_string(ranks),
          "Give one port for each rank of a member, or \"packed\" or \"round_robin\".");
  for (const std::int32_t port : l.binding)
    if (port < 0 || port >= l.ports)
      wrong(
          m,
          where + "binds a rank to port " + std::to_string(port) + " of " + std::to_string(l.ports),
          "Ports are numbered from 0.");
}

void check_graph(const machine& m) {
  const auto nodes = rank_count(m) + static_cast<std::int64_t>(m.wires.switches.size());
  if (m.wires.switches.size() > max_switches || m.wires.links.size() > max_links)
    wrong(m,
          "its graph has " + std::to_string(m.wires.switches.size()) + " switches and " +
              std::to_string(m.wires.links.size()) + " links",
          "Give at most " + std::to_string(max_switches) + " and " + std::to_string(max_links) +
              "; larger machines are described by levels.");
  for (const link& l : m.wires.links) {
    if (l.from < 0 || l.to < 0 || l.from >= nodes || l.to >= nodes || l.from == l.to)
      wrong(m,
            "a link goes from node " + std::to_string(l.from) + " to node " + std::to_string(l.to),
            "Nodes are the ranks and the switches, and a link joins two of them.");
    if (!(l.bandwidth > 0) || l.latency < 0)
      wrong(m,
            "the link from " + node_name(m, l.from) + " to " + node_name(m, l.to) +
                " has no bandwidth, or a negative latency",
            "Give its bandwidth in GB/s.");
  }
}

}  // namespace

std::string node_name(const machine& m, std::int32_t node) {
  const std::int64_t ranks = rank_count(m);
  return node < ranks ? std::to_string(node)
                      : m.wires.switches[static_cast<std::size_t>(node - ranks)];
}

std::int64_t member_ranks(const machine& m, std::size_t level) {
  std::int64_t ranks = 1;
  for (std::size_t l = level + 1; l < m.levels.size(); ++l) ranks *= m.levels[l].groups;
  return ranks;
}

std::int64_t rank_count(const machine& m) {
  return m.levels.empty() ? 1 : m.levels[0].groups * member_ranks(m, 0);
}

std::size_t common_level(const machine& m, std::int64_t a, std::int64_t b) {
  std::int64_t ranks = 1;
  std::size_t level = m.levels.size();
  // From the innermost outwards, until both are in one group.
  while (level > 0 && a / ranks != b / ranks) ranks *= m.levels[--level].groups;
  return level;
}

hierarchy hierarchy_of(const machine& m, std::int64_t ranks) {
  if (ranks < 1 || ranks > rank_count(m))
    base::fail(errc::invalid_argument,
               "the machine '" + m.name + "' has " + std::to_string(rank_count(m)) +
                   " ranks, not " + std::to_string(ranks),
               "Ask for fewer, or raise the outermost groups in its description.");
  hierarchy h;
  for (std::size_t l = 0; l < m.levels.size(); ++l) {
    const std::int64_t inside = member_ranks(m, l);
    // Where the outer levels have one group each, the last group is all there is.
    const bool partial = h.factors.empty();
    const std::int64_t factor =
        partial ? (ranks + inside - 1) / inside : std::int64_t{m.levels[l].groups};
    if (factor <= 1) continue;
    h.factors.push_back(static_cast<int>(factor));
    h.vias.push_back(m.levels[l].transports.front().name);
    h.levels.push_back(l);
  }
  return h;
}

void check_size(const machine& m) {
  if (m.levels.empty())
    wrong(m, "it has no levels", "Add a [[level]] with its name, groups and a transport.");
  if (m.levels.size() > max_machine_levels)
    wrong(m, "it has " + std::to_string(m.levels.size()) + " levels",
          "Give at most " + std::to_string(max_machine_levels) + ".");
  std::int64_t ranks = 1;
  for (const level& l : m.levels) {
    ranks *= std::max(1, l.groups);
    if (ranks > max_machine_ranks)
      wrong(m, "it has more than " + std::to_string(max_machine_ranks) + " ranks",
            "Lower the groups of its levels.");
  }
}

void check(const machine& m) {
  check_size(m);
  for (std::size_t l = 0; l < m.levels.size(); ++l) check_level(m, l);
  check_graph(m);
  if (m.local.shared_by < 1)
    wrong(m, "its memory is shared by no rank", "Give shared_by = 1 or more.");
}

}  // namespace sucl::sim
