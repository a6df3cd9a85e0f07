// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/graph/optimum.hpp"

#include "tune/graph/flow_network.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace sucl::tune {
namespace {

constexpr double whole_bandwidth = 1e3;  // bytes a second: smaller parts do not count
constexpr double rounding = 1e-9;

std::int64_t sum_of(const roots& wanted) {
  return std::accumulate(wanted.begin(), wanted.end(), std::int64_t{0});
}

std::int64_t whole(double bandwidth) { return std::llround(bandwidth / whole_bandwidth); }

// The graph with a source that has what is wanted, each unit worth `unit`.
flow_network network_of(const wiring& w, const roots& wanted, std::int64_t scale,
                        std::int64_t unit) {
  flow_network net(w.nodes + 1);
  for (const sim::link& l : w.links) net.add(l.from, l.to, whole(l.bandwidth) * scale);
  for (int r = 0; r < w.ranks; ++r)
    if (wanted[index(r)] > 0) net.add(w.nodes, r, wanted[index(r)] * unit);
  return net;
}

cut cut_of(const wiring& w, const roots& wanted, const std::vector<bool>& inside) {
  cut c;
  for (int n = 0; n < w.nodes; ++n) {
    if (!inside[index(n)]) continue;
    c.inside.push_back(n);
    if (n < w.ranks) c.units += wanted[index(n)];
  }
  for (const sim::link& l : w.links)
    if (inside[index(l.from)] && !inside[index(l.to)]) c.bandwidth += l.bandwidth;
  return c;
}

bool tighter(const cut& a, const cut& b) {
  return b.units == 0 || a.bandwidth * static_cast<double>(b.units) <
                             b.bandwidth * static_cast<double>(a.units) * (1 - rounding);
}

}  // namespace

wiring wiring::reversed() const {
  wiring w = *this;
  for (sim::link& l : w.links) std::swap(l.from, l.to);
  return w;
}

wiring wiring_of(const sim::machine& m, int ranks) {
  const auto all = static_cast<int>(sim::rank_count(m));
  wiring w;
  w.ranks = ranks;
  w.nodes = ranks + static_cast<int>(m.wires.switches.size());
  for (sim::link l : m.wires.links) {
    const auto used = [&](std::int32_t node) { return node < ranks || node >= all; };
    if (!used(l.from) || !used(l.to)) continue;
    if (l.from >= all) l.from -= all - ranks;
    if (l.to >= all) l.to -= all - ranks;
    w.links.push_back(l);
  }
  return w;
}

// Cuts get tighter until flows say that none is (Dinkelbach 1967).
cut tightest_cut(const wiring& w, const roots& wanted) {
  const std::int64_t all = sum_of(wanted);
  cut best;
  for (int v = 0; v < w.ranks; ++v) {
    std::vector<bool> inside(index(w.nodes), true);
    inside[index(v)] = false;
    const cut c = cut_of(w, wanted, inside);
    if (c.units > 0 && tighter(c, best)) best = c;
  }
  if (best.bandwidth <= 0) best.units = 0;
  for (int v = 0; v < w.ranks && best.units > 0;) {
    const std::int64_t unit = std::max<std::int64_t>(whole(best.bandwidth), 1);
    flow_network net = network_of(w, wanted, best.units, unit);
    if (net.flow(w.nodes, v, all * unit) >= all * unit) {
      ++v;
      continue;
    }
    std::vector<bool> inside;
    for (int n = 0; n < w.nodes; ++n) inside.push_back(net.on_source_side(n));
    const cut c = cut_of(w, wanted, inside);
    if (c.units == 0 || !tighter(c, best)) {
      ++v;
      continue;
    }
    best = c;
    if (best.bandwidth <= 0) {
      best.units = 0;
      return best;
    }
  }
  return best;
}

cut tightest_cut_of_scatter(const wiring& w, int root) {
  const auto cut_around = [&](const std::vector<bool>& inside) {
    cut c = cut_of(w, roots(index(w.ranks), 1), inside);
    c.units = w.ranks - c.units;
    return c;
  };
  std::vector<bool> inside(index(w.nodes));
  inside[index(root)] = true;
  cut best = cut_around(inside);
  while (best.bandwidth > 0) {
    const std::int64_t unit = std::max<std::int64_t>(whole(best.bandwidth), 1);
    flow_network net(w.nodes + 1);
    for (const sim::link& l : w.links) net.add(l.from, l.to, whole(l.bandwidth) * best.units);
    for (int r = 0; r < w.ranks; ++r)
      if (r != root) net.add(r, w.nodes, unit);
    const std::int64_t all = (w.ranks - 1) * unit;
    if (net.flow(root, w.nodes, all) >= all) return best;
    for (int n = 0; n < w.nodes; ++n) inside[index(n)] = net.on_source_side(n);
    const cut c = cut_around(inside);
    if (c.units == 0 || !tighter(c, best)) return best;
    best = c;
  }
  best.units = 0;
  return best;
}

capacities units_in(const wiring& w, double seconds) {
  constexpr double most = 1e15;
  capacities c(w.nodes);
  for (const sim::link& l : w.links)
    c.at(l.from, l.to) +=
        static_cast<std::int64_t>(std::min(most, seconds * l.bandwidth * (1 + rounding)));
  return c;
}

bool can_pack(const capacities& c, const roots& wanted) {
  const auto ranks = static_cast<int>(wanted.size());
  const std::int64_t all = sum_of(wanted);
  flow_network net(c.nodes() + 1);
  for (int a = 0; a < c.nodes(); ++a)
    for (int b = 0; b < c.nodes(); ++b)
      if (c.at(a, b) > 0) net.add(a, b, c.at(a, b));
  for (int r = 0; r < ranks; ++r)
    if (wanted[index(r)] > 0) net.add(c.nodes(), r, wanted[index(r)]);
  for (int v = 0; v < ranks; ++v)
    if (net.flow(c.nodes(), v, all) < all) return false;
  return true;
}

double min_time(const wiring& w, const roots& wanted) {
  const cut limit = tightest_cut(w, wanted);
  const double least = static_cast<double>(limit.units) / limit.bandwidth;
  std::vector<double> bandwidths;
  for (const sim::link& l : w.links) bandwidths.push_back(l.bandwidth);
  std::sort(bandwidths.begin(), bandwidths.end());
  bandwidths.erase(std::unique(bandwidths.begin(), bandwidths.end()), bandwidths.end());
  // A link carries one unit more at whole multiples of its time for one.
  const double last = 2 * least + 1 / bandwidths.front();
  constexpr int most = 256;  // of each bandwidth
  std::vector<double> times{least, last};
  for (const double b : bandwidths) {
    const double first = std::ceil(least * b * (1 - rounding));
    for (int i = 0; i < most && (first + i) / b < last; ++i)
      if ((first + i) / b > least) times.push_back((first + i) / b);
  }
  std::sort(times.begin(), times.end());
  const auto enough = std::partition_point(
      times.begin(), times.end(), [&](double t) { return !can_pack(units_in(w, t), wanted); });
  return enough == times.end() ? last : *enough;
}

}  // namespace sucl::tune
