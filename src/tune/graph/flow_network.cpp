// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/graph/flow_network.hpp"

#include <algorithm>

namespace sucl::tune {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

int flow_network::add(int from, int to, std::int64_t capacity) {
  const int number = static_cast<int>(m_arcs.size() / 2);
  m_out[at(from)].push_back(number * 2);
  m_out[at(to)].push_back(number * 2 + 1);
  m_arcs.push_back({to, capacity, 0});
  m_arcs.push_back({from, 0, 0});
  return number;
}

int flow_network::add_node() {
  m_out.emplace_back();
  return static_cast<int>(m_out.size()) - 1;
}

// How far nodes are from the source; whether the sink is reached.
bool flow_network::find_levels(int from, int to) {
  m_level.assign(m_out.size(), -1);
  m_queue.clear();
  m_level[at(from)] = 0;
  m_queue.push_back(from);
  for (std::size_t i = 0; i < m_queue.size(); ++i)
    for (const int a : m_out[at(m_queue[i])]) {
      const arc& by = m_arcs[at(a)];
      if (by.left <= 0 || m_level[at(by.to)] >= 0) continue;
      m_level[at(by.to)] = m_level[at(m_queue[i])] + 1;
      m_queue.push_back(by.to);
    }
  return m_level[at(to)] >= 0;
}

std::int64_t flow_network::push(int node, int to, std::int64_t most) {
  if (node == to) return most;
  std::int64_t pushed = 0;
  const std::vector<int>& out = m_out[at(node)];
  for (std::size_t& i = m_next[at(node)]; i < out.size(); ++i) {
    arc& by = m_arcs[at(out[i])];
    if (by.left <= 0 || m_level[at(by.to)] != m_level[at(node)] + 1) continue;
    const std::int64_t part = push(by.to, to, std::min(most - pushed, by.left));
    by.left -= part;
    m_arcs[at(out[i] ^ 1)].left += part;
    pushed += part;
    if (pushed == most) return pushed;
  }
  return pushed;
}

std::int64_t flow_network::flow(int from, int to, std::int64_t enough) {
  for (arc& a : m_arcs) a.left = a.capacity;
  std::int64_t total = 0;
  while (total < enough && find_levels(from, to)) {
    m_next.assign(m_out.size(), 0);
    total += push(from, to, enough - total);
  }
  return total;
}

}  // namespace sucl::tune
