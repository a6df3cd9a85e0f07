// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "tune/graph/trees.hpp"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

namespace sucl::tune {
namespace {

// How much of the time for which a link is taken counts against it, where messages go as if alone:
// so much that of equal paths the least used one is taken.
constexpr double evenness = 0.05;

// A tree that does not reach all ranks yet.
struct growing {
  tree made;
  std::vector<double> at;  // by rank: when it gets the data; negative: not reached

  bool has(int rank) const { return at[index(rank)] >= 0; }
};

class early_tree_builder {
 public:
  early_tree_builder(const route_table& routes, const roots& wanted, bool in_turn)
      : m_routes(routes),
        m_in_turn(in_turn),
        m_free(routes.seconds.size()),
        m_used(routes.seconds.size()) {
    for (int r = 0; r < routes.ranks; ++r) {
      if (wanted[index(r)] == 0) continue;
      growing g;
      g.made.root = r;
      g.at.assign(index(routes.ranks), -1);
      g.at[index(r)] = 0;
      m_trees.push_back(std::move(g));
      offer(static_cast<int>(m_trees.size()) - 1, r);
    }
  }

  std::vector<tree> run() {
    while (!m_edges.empty()) {
      edge next = m_edges.top();
      m_edges.pop();
      if (m_trees[index(next.tree)].has(next.to)) continue;
      const double at = arrival(next);
      if (at > next.at * (1 + 1e-9)) {  // its links are taken meanwhile
        next.at = at;
        m_edges.push(next);
      } else {
        take(next, at);
      }
    }
    std::vector<tree> done;
    for (growing& g : m_trees) done.push_back(std::move(g.made));
    return done;
  }

 private:
  struct edge {
    double at = 0;
    int tree = 0, from = 0, to = 0;
    friend bool operator<(const edge& a, const edge& b) {
      return std::tuple(a.at, a.tree, a.turn(), a.from) >
             std::tuple(b.at, b.tree, b.turn(), b.from);
    }
    int turn() const { return (to - from + 65536) % 65536; }
  };

  void offer(int tree, int from) {
    for (int to = 0; to < m_routes.ranks; ++to) {
      if (m_trees[index(tree)].has(to) || route_of(from, to).links.empty()) continue;
      edge e{0, tree, from, to};
      e.at = arrival(e);
      m_edges.push(e);
    }
  }

  const route& route_of(int from, int to) const { return m_routes.all[m_routes.pair(from, to)]; }
  double seconds_of(const route& r) const {
    double most = 0;
    for (const std::uint32_t l : r.links) most = std::max(most, m_routes.seconds[l]);
    return most;
  }

  // When an edge brings the data, if it is taken now: after what its links carry already.
  double arrival(const edge& e) const {
    const route& by = route_of(e.from, e.to);
    const std::uint32_t first = by.links.front(), last = by.links.back();
    const double ready = m_trees[index(e.tree)].at[index(e.from)];
    if (!m_in_turn)
      return ready + by.latency + seconds_of(by) + evenness * (m_used[first] + m_used[last]);
    return std::max({ready, m_free[first], m_free[last]}) + by.latency + seconds_of(by);
  }

  void take(const edge& e, double at) {
    const route& by = route_of(e.from, e.to);
    growing& g = m_trees[index(e.tree)];
    g.at[index(e.to)] = at;
    g.made.hops.push_back({e.from, e.to});
    for (const std::uint32_t l : {by.links.front(), by.links.back()}) {
      m_used[l] += seconds_of(by);
      m_free[l] = at - by.latency;
    }
    offer(e.tree, e.to);
  }

  const route_table& m_routes;
  bool m_in_turn;
  std::vector<double> m_free;  // by link: until when it is taken
  std::vector<double> m_used;  // by link: how long it is taken
  std::vector<growing> m_trees;
  std::priority_queue<edge> m_edges;
};

}  // namespace

std::vector<tree> early_trees(const route_table& routes, const roots& wanted, bool in_turn) {
  return early_tree_builder(routes, wanted, in_turn).run();
}

}  // namespace sucl::tune
