// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "tune/graph/trees.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace sucl::tune {
namespace {

constexpr double no_path = std::numeric_limits<double>::infinity();
constexpr int path_rounds = 16;
constexpr int max_rounds_worse = 4;  // in a row
constexpr double path_steepness = 8;
constexpr double path_steeper = 1.25;

class path_balancer {
 public:
  path_balancer(const route_table& routes, double depth)
      : m_ranks(routes.ranks),
        m_routes(routes),
        m_load(routes.seconds.size()),
        m_pairs(routes.seconds.size()),
        m_cost(routes.all.size(), no_path),
        m_fixed(routes.all.size()) {
    for (std::size_t pair = 0; pair < routes.all.size(); ++pair) {
      double slowest = 0;
      for (const std::uint32_t l : routes.all[pair].links) {
        m_pairs[l].push_back(pair);
        slowest = std::max(slowest, routes.seconds[l]);
      }
      m_fixed[pair] = depth * slowest;
    }
  }

  // As if each were alone.
  std::vector<tree> shortest(const std::vector<hop>& ends) {
    for (std::size_t pair = 0; pair < m_cost.size(); ++pair)
      if (!m_routes.all[pair].links.empty()) m_cost[pair] = m_fixed[pair] + latency(pair);
    std::vector<tree> all;
    for (const hop& e : ends) {
      all.push_back({e.from, {}});
      find(all.back(), e.to);
    }
    return all;
  }

  std::vector<tree> balanced(const std::vector<hop>& ends, int number) {
    std::vector<tree> all, best;
    for (int k = 0; k < number; ++k)
      for (const hop& e : ends) all.push_back({e.from, {}});
    double least = no_path;
    int worse = 0;
    for (int round = 0; round < path_rounds && worse < max_rounds_worse; ++round) {
      m_steepness = round == 0 ? 0 : path_steepness * std::pow(path_steeper, round - 1);
      for (std::size_t pair = 0; pair < m_cost.size(); ++pair) find_cost(pair);
      for (std::size_t t = 0; t < all.size(); ++t) {
        load(all[t], -1);
        all[t].hops.clear();
        find(all[t], ends[t % ends.size()].to);
        load(all[t], 1);
      }
      const double busiest = *std::max_element(m_load.begin(), m_load.end());
      worse = busiest < least ? 0 : worse + 1;
      if (busiest >= least) continue;
      least = m_enough = busiest;
      best = all;
    }
    return best;
  }

 private:
  double latency(std::size_t pair) const { return m_routes.all[pair].latency; }

  void find_cost(std::size_t pair) {
    if (m_routes.all[pair].links.empty()) return;
    m_cost[pair] = m_fixed[pair];
    for (const std::uint32_t l : m_routes.all[pair].links) {
      const double seconds = m_routes.seconds[l];
      const double over = m_steepness > 0 ? (m_load[l] + seconds) / m_enough - 1 : 0;
      m_cost[pair] += seconds * std::exp(m_steepness * over);
    }
  }

  void load(const tree& t, double sign) {
    for (const hop& h : t.hops)
      for (const std::uint32_t l : m_routes.all[m_routes.pair(h.from, h.to)].links) {
        m_load[l] += sign * m_routes.seconds[l];
        if (m_steepness > 0)
          for (const std::size_t pair : m_pairs[l]) find_cost(pair);
      }
  }

  // The cheapest path (Dijkstra 1959); of equal ones that in rotation, so that they are shared.
  void find(tree& t, int to) {
    m_far.assign(index(m_ranks), no_path);
    m_before.assign(index(m_ranks), -1);
    m_done.assign(index(m_ranks), false);
    m_far[index(t.root)] = 0;
    while (!m_done[index(to)]) {
      int next = -1;
      for (int shift = 0; shift < m_ranks; ++shift) {
        const int v = (t.root + shift) % m_ranks;
        if (!m_done[index(v)] && (next < 0 || m_far[index(v)] < m_far[index(next)])) next = v;
      }
      if (m_far[index(next)] == no_path)
        base::fail(errc::internal, "a rank of the graph is not reached",
                   "Report this with the description of the machine.");
      m_done[index(next)] = true;
      for (int v = 0; v < m_ranks; ++v) {
        const double far = m_far[index(next)] + m_cost[m_routes.pair(next, v)];
        if (m_done[index(v)] || far >= m_far[index(v)]) continue;
        m_far[index(v)] = far;
        m_before[index(v)] = next;
      }
    }
    for (int v = to; v != t.root; v = m_before[index(v)]) t.hops.push_back({m_before[index(v)], v});
    std::reverse(t.hops.begin(), t.hops.end());
  }

  int m_ranks;
  const route_table& m_routes;
  std::vector<double> m_load;                     // by link: for how long it is taken
  std::vector<std::vector<std::size_t>> m_pairs;  // by link
  std::vector<double> m_cost, m_fixed;            // by pair: whole, and what is not of its load
  std::vector<double> m_far;                      // by rank
  std::vector<int> m_before;
  std::vector<bool> m_done;
  double m_enough = 1;
  double m_steepness = 0;
};

}  // namespace

std::vector<tree> balanced_paths(const route_table& routes, const std::vector<hop>& ends,
                                 int number, double depth) {
  return path_balancer(routes, depth).balanced(ends, number);
}

std::vector<tree> shortest_paths(const route_table& routes, const std::vector<hop>& ends) {
  return path_balancer(routes, 1).shortest(ends);
}

}  // namespace sucl::tune
