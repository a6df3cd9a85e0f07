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

constexpr double endless = std::numeric_limits<double>::infinity();
constexpr int rounds = 24;
// How fast prices grow with the load, at first and from round to round.
constexpr double first_steepness = 8;
constexpr double steeper = 1.2;
constexpr double max_exponent = 200;

class balancer {
 public:
  balancer(const route_table& routes, double enough, double depth)
      : m_ranks(routes.ranks),
        m_routes(routes),
        m_load(routes.seconds.size()),
        m_price(routes.seconds.size()),
        m_pairs(routes.seconds.size()),
        m_enough(enough),
        m_depth(depth * *std::min_element(routes.seconds.begin(), routes.seconds.end())) {
    for (std::size_t pair = 0; pair < routes.all.size(); ++pair)
      for (const std::uint32_t l : routes.all[pair].links) m_pairs[l].push_back(pair);
  }

  std::vector<tree> run(const roots& wanted) {
    std::vector<tree> all, best;
    const std::int64_t most = *std::max_element(wanted.begin(), wanted.end());
    for (std::int64_t k = 0; k < most; ++k)
      for (int r = 0; r < m_ranks; ++r)
        if (wanted[index(r)] > k) all.push_back({r, {}});
    double least = endless;
    for (int round = 0; round < rounds && least > m_enough; ++round) {
      m_steepness = first_steepness * std::pow(steeper, round);
      for (tree& t : all) {
        take_back(t);
        grow(t);
      }
      const double load = *std::max_element(m_load.begin(), m_load.end());
      if (load >= least) continue;
      least = load;
      best = all;
    }
    return best;
  }

 private:
  // Of a link that would carry one message more.
  double price(std::uint32_t l) const {
    const double seconds = m_routes.seconds[l];
    const double over = (m_load[l] + seconds) / m_enough - 1;
    return seconds * std::exp(std::min(m_steepness * over, max_exponent));
  }

  const std::vector<std::uint32_t>& links(int from, int to) const {
    return m_routes.all[m_routes.pair(from, to)].links;
  }

  void take_back(tree& t) {
    for (const hop& h : t.hops)
      for (const std::uint32_t l : links(h.from, h.to)) m_load[l] -= m_routes.seconds[l];
    t.hops.clear();
  }

  // Next comes the edge that is cheapest, its depth included.
  void grow(tree& t) {
    for (std::uint32_t l = 0; l < m_load.size(); ++l) m_price[l] = price(l);
    m_cost.assign(m_routes.all.size(), endless);
    for (std::size_t pair = 0; pair < m_cost.size(); ++pair) find_cost(pair);
    m_reached.assign(1, {t.root, 0});
    m_open.clear();
    for (int shift = 1; shift < m_ranks; ++shift) m_open.push_back((t.root + shift) % m_ranks);
    while (!m_open.empty()) {
      const hop next = cheapest();
      t.hops.push_back(next);
      for (const std::uint32_t l : links(next.from, next.to)) {
        m_load[l] += m_routes.seconds[l];
        m_price[l] = price(l);
        for (const std::size_t pair : m_pairs[l]) find_cost(pair);
      }
    }
  }

  hop cheapest() {
    double best = endless;
    std::size_t from = 0, to = 0;
    for (std::size_t u = 0; u < m_reached.size(); ++u) {
      const auto& [rank, depth] = m_reached[u];
      const double* const costs = &m_cost[m_routes.pair(rank, 0)];
      const double above = m_depth * depth;
      for (std::size_t v = 0; v < m_open.size(); ++v) {
        const double cost = above + costs[m_open[v]];
        if (cost > best || (cost == best && turn(u, v) >= turn(from, to))) continue;
        best = cost;
        from = u;
        to = v;
      }
    }
    if (best == endless)
      base::fail(errc::internal, "a rank of the graph is not reached",
                 "Report this with the description of the machine.");
    const hop next{m_reached[from].first, m_open[to]};
    m_reached.emplace_back(next.to, m_reached[from].second + 1);
    m_open.erase(m_open.begin() + static_cast<std::ptrdiff_t>(to));
    return next;
  }
  // Equal ones in rotation, so that they are shared.
  int turn(std::size_t u, std::size_t v) const {
    return (m_open[v] - m_reached[u].first + m_ranks) % m_ranks;
  }

  void find_cost(std::size_t pair) {
    if (m_routes.all[pair].links.empty()) return;
    m_cost[pair] = 0;
    for (const std::uint32_t l : m_routes.all[pair].links) m_cost[pair] += m_price[l];
  }

  int m_ranks;
  const route_table& m_routes;
  std::vector<double> m_load;                     // by link: for how long it is taken
  std::vector<double> m_price;                    // by link
  std::vector<double> m_cost;                     // by pair
  std::vector<std::pair<int, int>> m_reached;     // ranks of the tree, with their depth
  std::vector<int> m_open;                        // the others
  std::vector<std::vector<std::size_t>> m_pairs;  // by link
  double m_enough;
  double m_depth;  // what each hop between it and the root adds to the price of an edge
  double m_steepness = first_steepness;
};

}  // namespace

std::vector<tree> balanced_trees(const route_table& routes, const roots& wanted, double enough,
                                 double depth) {
  return balancer(routes, enough, depth).run(wanted);
}

double busiest_link(const route_table& routes, const std::vector<tree>& trees) {
  std::vector<double> load(routes.seconds.size());
  for (const tree& t : trees)
    for (const hop& h : t.hops)
      for (const std::uint32_t l : routes.all[routes.pair(h.from, h.to)].links)
        load[l] += routes.seconds[l];
  return *std::max_element(load.begin(), load.end());
}

}  // namespace sucl::tune
