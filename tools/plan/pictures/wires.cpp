// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "wires.hpp"

#include "svg.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

namespace sucl::tools {
namespace {

constexpr double size = 900, middle = size / 2, rim = 380, hub = 130;
constexpr std::size_t max_nodes = 1024;

using point = std::pair<double, double>;

// Ranks on a circle in their order, switches on a smaller one.
std::vector<point> positions_of(std::size_t ranks, std::size_t switches) {
  std::vector<point> all;
  const auto add = [&](std::size_t i, std::size_t count, double radius) {
    const double turn = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(count);
    all.emplace_back(middle + radius * std::sin(turn), middle - radius * std::cos(turn));
  };
  for (std::size_t i = 0; i < ranks; ++i) add(i, ranks, rim);
  for (std::size_t i = 0; i < switches; ++i) add(i, switches, switches == 1 ? 0 : hub);
  return all;
}

}  // namespace

std::string draw_wires(const sim::machine& m) {
  const auto ranks = static_cast<std::size_t>(sim::rank_count(m));
  const std::size_t nodes = ranks + m.wires.switches.size();
  if (m.wires.empty() || nodes > max_nodes)
    base::fail(errc::invalid_argument,
               m.wires.empty()
                   ? "the machine " + m.name + " is described by levels"
                   : "the graph of " + m.name + " has " + std::to_string(nodes) + " nodes",
               "Graphs of at most " + std::to_string(max_nodes) + " nodes are drawn.");
  const std::vector<point> at = positions_of(ranks, m.wires.switches.size());
  std::vector<double> bandwidths;
  for (const sim::link& l : m.wires.links) bandwidths.push_back(l.bandwidth);
  std::sort(bandwidths.begin(), bandwidths.end());
  bandwidths.erase(std::unique(bandwidths.begin(), bandwidths.end()), bandwidths.end());
  svg picture(size, size + 20 * static_cast<double>(bandwidths.size()) + 20);
  const auto kind_of = [&](double bandwidth) {
    return static_cast<std::size_t>(
        std::lower_bound(bandwidths.begin(), bandwidths.end(), bandwidth) - bandwidths.begin());
  };
  for (const sim::link& l : m.wires.links) {
    const point a = at[static_cast<std::size_t>(l.from)], b = at[static_cast<std::size_t>(l.to)];
    const std::size_t kind = kind_of(l.bandwidth);
    picture.line(a.first, a.second, b.first, b.second, palette(kind),
                 1 + static_cast<double>(kind));
  }
  for (std::size_t n = 0; n < nodes; ++n) {
    const auto [x, y] = at[n];
    picture.rect(x - 13, y - 9, 26, 18, n < ranks ? "#ffffff" : "#dddddd");
    picture.text(x, y + 4, sim::node_name(m, static_cast<std::int32_t>(n)), anchor::middle);
  }
  for (std::size_t k = 0; k < bandwidths.size(); ++k) {
    const double y = size + 20 * static_cast<double>(k);
    picture.line(20, y, 60, y, palette(k), 1 + static_cast<double>(k));
    picture.text(70, y + 4, pixels(bandwidths[k] / 1e9) + " GB/s");
  }
  return picture.finish();
}

}  // namespace sucl::tools
