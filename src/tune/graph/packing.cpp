// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/graph/packing.hpp"

#include "base/error.hpp"
#include "tune/graph/flow_network.hpp"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

namespace sucl::tune {
namespace {

// How much of the time for which a link is taken counts against it, where trees are to be shallow:
// so much that of ways that are alike the one is taken that is used least.
constexpr double evenness = 0.05;

// A tree that does not reach all ranks yet.
struct growing {
  tree made;
  std::vector<double> at;  // by rank: when it gets a unit; negative: not reached
  int reached = 1;
  int from_source = -1;  // arc
  int node = -1;

  bool has(int rank) const { return at[index(rank)] >= 0; }
};

class packer {
 public:
  packer(capacities c, const roots& wanted, const hop_costs& costs)
      : m_c(std::move(c)),
        m_ranks(static_cast<int>(wanted.size())),
        m_costs(costs),
        m_free(costs.links),
        m_used(costs.links),
        m_net(m_ranks + 1) {
    make_arcs();
    for (int r = 0; r < m_ranks; ++r) {
      if (wanted[index(r)] == 0) continue;
      growing g;
      g.made.root = r;
      g.made.weight = wanted[index(r)];
      g.at.assign(index(m_ranks), -1);
      g.at[index(r)] = 0;
      begin(std::move(g));
    }
  }

  // All trees grow at once: next comes the edge that reaches its rank first.
  std::vector<tree> run() {
    while (!m_edges.empty()) {
      edge next = m_edges.top();
      m_edges.pop();
      if (m_parts[index(next.part)].has(next.to) || m_c.at(next.from, next.to) == 0) continue;
      const double at = arrival(next);
      if (at > next.at * (1 + 1e-9)) {  // its links are taken meanwhile
        next.at = at;
        m_edges.push(next);
        continue;
      }
      const std::int64_t room = room_for(next);
      if (room > 0) take(next, room);  // else nor later: flows only get smaller
    }
    std::vector<tree> done;
    for (growing& g : m_parts) {
      if (g.reached < m_ranks)
        base::fail(errc::internal, "no edge is left for a tree of the graph",
                   "Report this with the description of the machine.");
      done.push_back(std::move(g.made));
    }
    return done;
  }

 private:
  struct edge {
    double at = 0;
    int part = 0, from = 0, to = 0;
    friend bool operator<(const edge& a, const edge& b) {
      return std::tuple(a.at, a.part, a.turn(), a.from) >
             std::tuple(b.at, b.part, b.turn(), b.from);
    }
    int turn() const { return (to - from + 65536) % 65536; }
  };

  void make_arcs() {
    m_arcs.assign(index(m_ranks), std::vector<int>(index(m_ranks), -1));
    for (int a = 0; a < m_ranks; ++a)
      for (int b = 0; b < m_ranks; ++b)
        if (m_c.at(a, b) > 0) m_arcs[index(a)][index(b)] = m_net.add(a, b, m_c.at(a, b));
    for (int r = 0; r < m_ranks; ++r) m_to_rank.push_back(m_net.add(m_ranks, r, 0));
  }

  void begin(growing g) {
    g.node = m_net.add_node();
    g.from_source = m_net.add(m_ranks, g.node, 0);
    for (int r = 0; r < m_ranks; ++r)
      if (g.has(r)) m_net.add(g.node, r, unlimited_flow);
    const auto part = static_cast<int>(m_parts.size());
    m_parts.push_back(std::move(g));
    need(part, true);
    for (int r = 0; r < m_ranks; ++r)
      if (m_parts.back().has(r)) offer(part, r);
  }

  // Whether the flows must leave room for a part.
  void need(int part, bool needed) {
    const growing& g = m_parts[index(part)];
    m_net.set(g.from_source, needed ? g.made.weight : 0);
    m_needed += needed ? g.made.weight : -g.made.weight;
  }

  void offer(int part, int from) {
    for (int to = 0; to < m_ranks; ++to) {
      if (m_parts[index(part)].has(to) || m_c.at(from, to) == 0) continue;
      edge e{0, part, from, to};
      e.at = arrival(e);
      m_edges.push(e);
    }
  }

  // When an edge brings a unit, if it is taken now: after what its links carry already.
  double arrival(const edge& e) const {
    const growing& g = m_parts[index(e.part)];
    const hop_cost& c = m_costs.at(e.from, e.to);
    const double units = static_cast<double>(g.made.weight);
    if (!m_costs.in_turn)
      return g.at[index(e.from)] + c.latency + c.seconds * units +
             evenness * (m_used[c.first] + m_used[c.last]);
    const double start = std::max({g.at[index(e.from)], m_free[c.first], m_free[c.last]});
    return start + c.latency + units * c.seconds;
  }

  // How many copies of the tree may take this edge.
  std::int64_t room_for(const edge& e) {
    const std::int64_t most = std::min(m_c.at(e.from, e.to), m_parts[index(e.part)].made.weight);
    if (m_costs.unlimited) return most;
    need(e.part, false);
    m_net.set(m_to_rank[index(e.from)], unlimited_flow);
    const std::int64_t flow = m_net.flow(m_ranks, e.to, m_needed + most);
    m_net.set(m_to_rank[index(e.from)], 0);
    const std::int64_t room = flow - m_needed;
    need(e.part, true);
    return room;
  }

  void take(const edge& e, std::int64_t room) {
    growing* g = &m_parts[index(e.part)];
    if (room < g->made.weight) {
      growing rest = *g;
      need(e.part, false);
      rest.made.weight -= room;
      g->made.weight = room;
      need(e.part, true);
      begin(std::move(rest));
      g = &m_parts[index(e.part)];
    }
    const hop_cost& c = m_costs.at(e.from, e.to);
    g->at[index(e.to)] = arrival(e);
    m_used[c.first] += static_cast<double>(g->made.weight) * c.seconds;
    m_used[c.last] += static_cast<double>(g->made.weight) * c.seconds;
    m_free[c.first] = m_free[c.last] = g->at[index(e.to)] - c.latency;
    if (!m_costs.unlimited) m_c.at(e.from, e.to) -= g->made.weight;
    m_net.set(m_arcs[index(e.from)][index(e.to)], m_c.at(e.from, e.to));
    m_net.add(g->node, e.to, unlimited_flow);
    g->made.hops.push_back({e.from, e.to});
    if (++g->reached == m_ranks)
      need(e.part, false);
    else
      offer(e.part, e.to);
  }

  capacities m_c;
  int m_ranks;
  const hop_costs& m_costs;
  std::vector<double> m_free;  // by link: until when it is taken
  std::vector<double> m_used;  // by link: how long it is taken
  flow_network m_net;          // from node `ranks` to what the trees have, and from there
  std::vector<std::vector<int>> m_arcs;
  std::vector<int> m_to_rank;
  std::vector<growing> m_parts;
  std::int64_t m_needed = 0;
  std::priority_queue<edge> m_edges;
};

}  // namespace

std::vector<tree> pack_trees(capacities c, const roots& wanted, const hop_costs& costs) {
  return packer(std::move(c), wanted, costs).run();
}

}  // namespace sucl::tune
