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
        m_seconds(routes.all.size()),
        m_enough(enough),
        m_depth(depth) {
    for (std::size_t pair = 0; pair < routes.all.size(); ++pair)
      for (const std::uint32_t l : routes.all[pair].links) {
        m_pairs[l].push_back(pair);
        m_seconds[pair] = std::max(m_seconds[pair], routes.seconds[l]);
      }
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
    m_edges.assign(index(m_ranks), {});
    m_reached.clear();
    m_open.clear();
    for (int shift = 1; shift < m_ranks; ++shift) m_open.push_back((t.root + shift) % m_ranks);
    reach(t.root, 0);
    while (!m_open.empty()) {
      const int to = nearest();
      const edge by = m_edges[index(to)];
      t.hops.push_back({by.from, to});
      std::erase(m_open, to);
      for (const std::uint32_t l : links(by.from, to)) {
        m_load[l] += m_routes.seconds[l];
        m_price[l] = price(l);
        for (const std::size_t pair : m_pairs[l]) rise(pair);
      }
      reach(to, m_at[index(by.from)] + m_seconds[m_routes.pair(by.from, to)]);
    }
  }

  // The cheapest edge to a rank. It is dear if its price has risen since: then others may be
  // cheaper, but none is cheaper than `cost`.
  struct edge {
    double cost = endless;
    int from = 0;
    bool dear = false;
  };

  void rise(std::size_t pair) {
    find_cost(pair);
    edge& e = m_edges[pair % index(m_ranks)];
    if (e.from == static_cast<int>(pair / index(m_ranks))) e.dear = true;
  }

  // Equal ones in rotation, so that they are shared.
  int turn(int from, int to) const { return (to - from + m_ranks) % m_ranks; }

  void offer(int from, int to) {
    const double cost = m_depth * m_at[index(from)] + m_cost[m_routes.pair(from, to)];
    edge& e = m_edges[index(to)];
    if (cost > e.cost || (cost == e.cost && turn(from, to) >= turn(e.from, to))) return;
    e = {cost, from, false};
  }

  // `at`: when it has the data.
  void reach(int rank, double at) {
    m_at.resize(index(m_ranks));
    m_at[index(rank)] = at;
    m_reached.push_back(rank);
    for (const int to : m_open) offer(rank, to);
  }

  int nearest() {
    while (true) {
      int best = m_open.front();
      for (const int v : m_open) {
        const edge &e = m_edges[index(v)], &b = m_edges[index(best)];
        if (e.cost < b.cost || (e.cost == b.cost && turn(e.from, v) < turn(b.from, best))) best = v;
      }
      edge& e = m_edges[index(best)];
      if (e.cost == endless)
        base::fail(errc::internal, "a rank of the graph is not reached",
                   "Report this with the description of the machine.");
      if (!e.dear) return best;
      e = {};
      for (const int from : m_reached) offer(from, best);
    }
  }

  void find_cost(std::size_t pair) {
    if (m_routes.all[pair].links.empty()) return;
    m_cost[pair] = m_depth * m_seconds[pair];
    for (const std::uint32_t l : m_routes.all[pair].links) m_cost[pair] += m_price[l];
  }

  int m_ranks;
  const route_table& m_routes;
  std::vector<double> m_load;                     // by link: for how long it is taken
  std::vector<double> m_price;                    // by link
  std::vector<double> m_cost;                     // by pair
  std::vector<edge> m_edges;                      // by rank that is not reached
  std::vector<double> m_at;                       // by rank: when it has the data
  std::vector<int> m_reached, m_open;             // ranks of the tree, and the others
  std::vector<std::vector<std::size_t>> m_pairs;  // by link
  std::vector<double> m_seconds;                  // by pair, of its slowest link
  double m_enough;
  double m_depth;  // what each second until an edge has brought the data adds to its price
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
