// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sim/model/paths.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

namespace sucl::sim {
namespace {

constexpr std::uint32_t none = ~std::uint32_t{0};

// The order of preference of paths: the smaller one is better.
struct cost {
  double latency = 0;
  std::size_t hops = 0;
  double narrowness = 0;  // minus the bandwidth

  friend bool operator<(const cost& a, const cost& b) {
    return std::tie(a.latency, a.hops, a.narrowness) < std::tie(b.latency, b.hops, b.narrowness);
  }
};

struct reached {
  cost of;
  std::uint32_t by = none;  // link
};

}  // namespace

paths::paths(const machine& m)
    : m_machine(m), m_ranks(m.wires.empty() ? 0 : static_cast<std::int32_t>(rank_count(m))) {
  for (std::uint32_t l = 0; l < m.wires.links.size(); ++l)
    m_out[m.wires.links[l].from].push_back(l);
}

const path* paths::between(std::int32_t from, std::int32_t to) {
  auto known = m_known.find(from);
  if (known == m_known.end()) known = m_known.emplace(from, search(from)).first;
  const auto found = known->second.find(to);
  return found == known->second.end() ? nullptr : &found->second;
}

// Dijkstra's algorithm; ranks are ends.
paths::paths_from paths::search(std::int32_t from) const {
  std::unordered_map<std::int32_t, reached> best;
  std::set<std::pair<cost, std::int32_t>> open;
  best[from].of.narrowness = -std::numeric_limits<double>::max();
  open.emplace(best[from].of, from);
  while (!open.empty()) {
    const auto [at, node] = *open.begin();
    open.erase(open.begin());
    const auto out = m_out.find(node);
    if ((node < m_ranks && node != from) || out == m_out.end() || at.hops == max_hops) continue;
    for (const std::uint32_t l : out->second) {
      const link& by = m_machine.wires.links[l];
      const cost next{at.latency + by.latency, at.hops + 1, std::max(at.narrowness, -by.bandwidth)};
      const auto [known, fresh] = best.try_emplace(by.to);
      if (by.to == from || (!fresh && !(next < known->second.of))) continue;
      if (!fresh) open.erase({known->second.of, by.to});
      known->second = {next, l};
      open.emplace(next, by.to);
    }
  }
  paths_from all;
  for (const auto& [node, r] : best) {
    if (node >= m_ranks || node == from || r.by == none) continue;
    path& p = all[node];
    p.latency = r.of.latency;
    for (std::int32_t at = node; at != from; at = m_machine.wires.links[p.links.back()].from)
      p.links.push_back(best.at(at).by);
    std::reverse(p.links.begin(), p.links.end());
  }
  return all;
}

}  // namespace sucl::sim
