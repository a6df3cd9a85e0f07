// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Two-level collectives with a node stage through shared scratch and messages between the leaders
// of nodes: single- and multi-leader allreduce as in Jocksch and others (2021) and in the
// reductions for Intel GPUs, with any pattern of messages. Nodes may have different numbers of
// ranks.
#include "plan/algorithms/collectives.hpp"

#include <algorithm>

namespace sucl::plan {
namespace {

constexpr std::uint64_t staged_flag = 0, result_flag = 1;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// What the ranks of all nodes share here. The j-th leader of a node is its j-th member.
struct stage {
  builder& b;
  std::vector<std::vector<int>> nodes;
  std::vector<address> staged;  // by rank: all of its input
};

// Every rank stages its input for the leaders of its node.
void stage_inputs(stage& s, std::uint64_t bytes, int leaders) {
  s.staged.resize(at(s.b.ranks()));
  for (const auto& node : s.nodes) {
    for (const int r : node) {
      s.staged[at(r)] = s.b.scratch(r, bytes);
      s.b.copy(r, s.staged[at(r)], {space::send, 0}, bytes);
      for (int j = 0; j < leaders; ++j)
        if (node[at(j)] != r) s.b.signal(r, node[at(j)], staged_flag);
    }
  }
}

// Leader `r` combines a part of what its node has staged, in the order of its members.
void combine(const stage& s, const std::vector<int>& node, int r, address to, std::uint64_t offset,
             std::uint64_t bytes) {
  for (const int m : node)
    if (m != r) s.b.wait(r, m, staged_flag);
  for (const int m : node) {
    const address from = s.staged[at(m)] + offset;
    const int peer = m == r ? -1 : m;
    const address named = m == r ? from : remote(from);
    if (m == node[0])
      s.b.copy(r, to, named, bytes, peer);
    else
      s.b.reduce(r, to, named, bytes, peer);
  }
}

// Leader `r` shows its node a part of the result, and the others copy it.
void publish(builder& b, const std::vector<int>& node, int r, address from, std::uint64_t bytes,
             std::vector<address>& shown) {
  if (node.size() == 1) return;
  shown[at(r)] = b.scratch(r, bytes);
  b.copy(r, shown[at(r)], from, bytes);
  for (const int m : node)
    if (m != r) b.signal(r, m, result_flag);
}

void allreduce(builder& b, const recipe& r) {
  const std::uint64_t bytes = send_bytes(b.what(), 0);
  if (bytes == 0) return;
  stage s{b, members_of(r.nodes), {}};
  std::size_t least = s.nodes[0].size();
  for (const auto& node : s.nodes) least = std::min(least, node.size());
  const int leaders =
      r.leaders > 0 ? std::min(r.leaders, static_cast<int>(least)) : static_cast<int>(least);
  const ends parts = cut_evenly(bytes, b.element(), leaders);
  const auto size = [&](int j) { return parts[at(j) + 1] - parts[at(j)]; };
  stage_inputs(s, bytes, leaders);
  for (int j = 0; j < leaders; ++j) {
    team same;
    for (const auto& node : s.nodes) {
      const int leader = node[at(j)];
      same.ranks.push_back(leader);
      same.base.push_back({space::recv, parts[at(j)]});
      combine(s, node, leader, same.base.back(), parts[at(j)], size(j));
    }
    if (size(j) > 0) team_allreduce(b, same, size(j), r, r.outer, 0);
  }
  std::vector<address> shown(at(b.ranks()));
  for (const auto& node : s.nodes) {
    for (int j = 0; j < leaders; ++j)
      publish(b, node, node[at(j)], {space::recv, parts[at(j)]}, size(j), shown);
    for (const int m : node) {
      for (int j = 0; j < leaders; ++j) {
        const int leader = node[at(j)];
        if (leader == m) continue;
        b.wait(m, leader, result_flag);
        b.copy(m, {space::recv, parts[at(j)]}, remote(shown[at(leader)]), size(j), leader);
      }
    }
  }
}

// The leaders of all nodes; the root leads its own.
std::vector<std::vector<int>> nodes_by_root(const builder& b, const recipe& r, int& root_node) {
  auto nodes = members_of(r.nodes);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto root = std::find(nodes[n].begin(), nodes[n].end(), b.what().root);
    if (root == nodes[n].end()) continue;
    std::rotate(nodes[n].begin(), root, root + 1);
    root_node = static_cast<int>(n);
  }
  return nodes;
}

void broadcast(builder& b, const recipe& r) {
  const std::uint64_t bytes = input_block(b.what(), b.what().root, 0).bytes;
  if (bytes == 0) return;
  int root_node = 0;
  const auto nodes = nodes_by_root(b, r, root_node);
  team heads;
  for (const auto& node : nodes) {
    heads.ranks.push_back(node[0]);
    heads.base.push_back({node[0] == b.what().root ? space::send : space::recv, 0});
  }
  tree_broadcast(b, heads, root_node, bytes, r.radices[0]);
  std::vector<address> shown(at(b.ranks()));
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    publish(b, nodes[n], nodes[n][0], heads.base[n], bytes, shown);
    for (std::size_t m = 1; m < nodes[n].size(); ++m) {
      b.wait(nodes[n][m], nodes[n][0], result_flag);
      b.copy(nodes[n][m], {space::recv, 0}, remote(shown[at(nodes[n][0])]), bytes, nodes[n][0]);
    }
  }
}

void reduce(builder& b, const recipe& r) {
  const std::uint64_t bytes = send_bytes(b.what(), 0);
  if (bytes == 0) return;
  int root_node = 0;
  stage s{b, nodes_by_root(b, r, root_node), {}};
  stage_inputs(s, bytes, 1);
  team heads;
  for (const auto& node : s.nodes) {
    const int head = node[0];
    heads.ranks.push_back(head);
    heads.base.push_back(head == b.what().root ? address{space::recv, 0} : b.scratch(head, bytes));
    combine(s, node, head, heads.base.back(), 0, bytes);
  }
  tree_reduce(b, heads, root_node, bytes, r.radices[0]);
}

}  // namespace

void build_two_level(builder& b, const recipe& r) {
  if (b.what().kind == kind::allreduce) return allreduce(b, r);
  if (b.what().kind == kind::broadcast) return broadcast(b, r);
  reduce(b, r);
}

}  // namespace sucl::plan
