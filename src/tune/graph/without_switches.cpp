// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Capacities without switches: those of each switch are split into pairs of an incoming and an
// outgoing link, which become one link of their own.
#include "tune/graph/flow_network.hpp"
#include "tune/graph/optimum.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace sucl::tune {
namespace {

constexpr int unreached = 1 << 20;

class splitter {
 public:
  splitter(capacities c, const roots& wanted, int ranks)
      : m_c(std::move(c)), m_wanted(wanted), m_ranks(ranks) {}

  capacities run() {
    // Switches that few nodes lead to first: they are nearest to the ranks.
    std::vector<int> order(index(m_c.nodes() - m_ranks));
    std::iota(order.begin(), order.end(), m_ranks);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return incoming(a).size() < incoming(b).size(); });
    for (const int w : order) {
      const capacities before = m_c;
      split_evenly(w);
      close(w);
      if (can_pack(m_c, m_wanted)) continue;
      m_c = before;
      split_exactly(w);
      close(w);
    }
    return std::move(m_c);
  }

 private:
  std::vector<int> incoming(int w) const {
    std::vector<int> list;
    for (int n = 0; n < m_c.nodes(); ++n)
      if (m_c.at(n, w) > 0) list.push_back(n);
    return list;
  }
  std::vector<int> outgoing(int w) const {
    std::vector<int> list;
    for (int n = 0; n < m_c.nodes(); ++n)
      if (m_c.at(w, n) > 0) list.push_back(n);
    return list;
  }
  void close(int w) {
    for (int n = 0; n < m_c.nodes(); ++n) m_c.at(n, w) = m_c.at(w, n) = 0;
  }
  void move(int from, int w, int to, std::int64_t units) {
    m_c.at(from, w) -= units;
    m_c.at(w, to) -= units;
    m_c.at(from, to) += units;
  }

  // Links that are passed from one node to the others without the switch.
  std::vector<int> distances(int from, int without) const {
    std::vector<int> far(index(m_c.nodes()), unreached), queue{from};
    far[index(from)] = 0;
    for (std::size_t i = 0; i < queue.size(); ++i)
      for (int n = 0; n < m_c.nodes(); ++n)
        if (n != without && far[index(n)] == unreached && m_c.at(queue[i], n) > 0) {
          far[index(n)] = far[index(queue[i])] + 1;
          queue.push_back(n);
        }
    return far;
  }

  // Between those that are far from each other without the switch, all alike and in rotation.
  void split_evenly(int w) {
    const std::vector<int> in = incoming(w), out = outgoing(w);
    std::vector<std::vector<int>> far;
    int farthest = 0;
    bool apart = false;
    for (const int u : in) {
      far.push_back(distances(u, w));
      for (const int t : out) {
        const int d = far.back()[index(t)];
        apart = apart || d == unreached;
        if (d < unreached) farthest = std::max(farthest, d);
      }
    }
    const auto joins = [&](std::size_t i, int t) {
      return in[i] != t &&
             (apart ? far[i][index(t)] == unreached : 2 * far[i][index(t)] > farthest);
    };
    for (std::int64_t part = 2; part > 0;) {  // first in large parts, in the end one by one
      bool moved = false;
      for (std::size_t shift = 0; shift < out.size(); ++shift)
        for (std::size_t i = 0; i < in.size(); ++i) {
          const int t = out[(i + shift) % out.size()];
          if (!joins(i, t)) continue;
          const std::int64_t left = std::min(m_c.at(in[i], w), m_c.at(w, t));
          const auto share = static_cast<std::int64_t>(part > 1 ? out.size() * 2 : 1);
          const std::int64_t units = part > 1 ? left / share : std::min<std::int64_t>(left, 1);
          if (units > 0) move(in[i], w, t, units);
          moved = moved || units > 0;
        }
      if (!moved) --part;
    }
  }

  // As much of each pair as keeps all trees possible.
  void split_exactly(int w) {
    for (const int u : incoming(w))
      for (const int t : outgoing(w)) {
        if (u == t) continue;
        const std::int64_t units = std::min({m_c.at(u, w), m_c.at(w, t), slack(u, w, t)});
        if (units > 0) move(u, w, t, units);
      }
  }

  // By how much the sides that hold both ends and not the switch, or the switch and neither end,
  // have more capacity than they need.
  std::int64_t slack(int u, int w, int t) const {
    const int source = m_c.nodes(), sink = source + 1;
    flow_network net(m_c.nodes() + 2);
    for (int a = 0; a < m_c.nodes(); ++a)
      for (int b = 0; b < m_c.nodes(); ++b)
        if (m_c.at(a, b) > 0) net.add(a, b, m_c.at(a, b));
    std::int64_t all = 0;
    for (int r = 0; r < m_ranks; ++r) {
      net.add(source, r, m_wanted[index(r)]);
      all += m_wanted[index(r)];
    }
    const int first = net.add(source, u, unlimited_flow),
              second = net.add(source, t, unlimited_flow);
    const int middle = net.add(w, sink, unlimited_flow);
    std::int64_t least = unlimited_flow;
    const std::int64_t enough = all + std::min(m_c.at(u, w), m_c.at(w, t));
    for (int v = 0; v < m_ranks; ++v) {
      if (v == u || v == t) continue;
      const int out = net.add(v, sink, unlimited_flow);
      least = std::min(least, net.flow(source, sink, enough) - all);
      net.set(out, 0);
      if (least <= 0) return 0;
    }
    net.set(first, 0);
    net.set(second, 0);
    net.set(middle, 0);
    net.add(source, w, unlimited_flow);
    net.add(u, sink, unlimited_flow);
    net.add(t, sink, unlimited_flow);
    if (u < m_ranks || t < m_ranks) return std::min(least, net.flow(source, sink, enough) - all);
    for (int v = 0; v < m_ranks; ++v) {
      const int out = net.add(v, sink, unlimited_flow);
      least = std::min(least, net.flow(source, sink, enough) - all);
      net.set(out, 0);
    }
    return least;
  }

  capacities m_c;
  const roots& m_wanted;
  int m_ranks;
};

}  // namespace

capacities without_switches(const wiring& w, capacities c, const roots& wanted) {
  return splitter(std::move(c), wanted, w.ranks).run();
}

}  // namespace sucl::tune
