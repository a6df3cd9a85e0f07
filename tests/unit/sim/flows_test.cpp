// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Flows end when progressive filling of everything, flow by flow and from nothing at each change,
// says that they end.
#include "sim/flows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace sucl::sim {
namespace {

struct planned {
  double start = 0, bytes = 0;
  std::vector<std::pair<std::uint32_t, double>> through;  // limit and weight
};

struct network {
  std::vector<double> capacities;
  std::vector<planned> all;  // by start
};

// Few ways, so that flows share them, start while others are in flight, and some at once.
network make(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return random() % n; };
  network n;
  const unsigned limits = 4 + below(30), sparse = 3 + limits / 6;
  for (unsigned i = 0; i < limits; ++i) n.capacities.push_back(1e6 * (1 + below(16)));
  std::vector<planned> ways(6 + below(45));
  const double weights[] = {1, 1, 1, 2, 0.5};
  for (planned& way : ways)
    for (std::uint32_t l = 0; l < n.capacities.size(); ++l)
      if (below(sparse) == 0 || (way.through.empty() && l + 1 == n.capacities.size()))
        way.through.emplace_back(l, weights[below(5)]);
  double now = 0;
  for (int i = 0; i < 150; ++i) {
    planned f = ways[below(static_cast<unsigned>(ways.size()))];
    if (below(4) != 0) now += 1e-3 * below(6);
    f.start = now;
    f.bytes = 1e3 * (1 + below(100));
    n.all.push_back(std::move(f));
  }
  return n;
}

// The rates of the flows that are in flight.
std::vector<double> fair_rates(const network& n, const std::vector<std::size_t>& under_way) {
  std::vector<double> left = n.capacities, rates(under_way.size(), -1);
  for (std::size_t unfixed = under_way.size(); unfixed > 0;) {
    std::vector<double> weight(left.size());
    for (std::size_t i = 0; i < under_way.size(); ++i)
      if (rates[i] < 0)
        for (const auto& [l, w] : n.all[under_way[i]].through) weight[l] += w;
    double least = std::numeric_limits<double>::infinity();
    std::size_t full = 0;
    for (std::size_t l = 0; l < left.size(); ++l)
      if (weight[l] > 1e-9 && left[l] / weight[l] < least) {
        least = left[l] / weight[l];
        full = l;
      }
    for (std::size_t i = 0; i < under_way.size(); ++i) {
      const auto& through = n.all[under_way[i]].through;
      if (rates[i] >= 0 || std::none_of(through.begin(), through.end(),
                                        [&](const auto& t) { return t.first == full; }))
        continue;
      rates[i] = least;
      --unfixed;
      for (const auto& [l, w] : through) left[l] = std::max(0.0, left[l] - w * least);
    }
  }
  return rates;
}

std::vector<double> expected_ends(const network& n) {
  std::vector<double> ends(n.all.size()), left(n.all.size());
  std::vector<std::size_t> under_way;
  double now = 0;
  for (std::size_t next = 0; next < n.all.size() || !under_way.empty();) {
    const std::vector<double> rates = fair_rates(n, under_way);
    double until =
        next < n.all.size() ? n.all[next].start : std::numeric_limits<double>::infinity();
    std::size_t first = under_way.size();
    for (std::size_t i = 0; i < under_way.size(); ++i)
      if (const double end = now + left[under_way[i]] / rates[i]; end < until) {
        until = end;
        first = i;
      }
    for (std::size_t i = 0; i < under_way.size(); ++i)
      left[under_way[i]] -= rates[i] * (until - now);
    now = until;
    if (first < under_way.size()) {
      ends[under_way[first]] = now;
      under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(first));
    } else {
      left[next] = n.all[next].bytes;
      under_way.push_back(next++);
    }
  }
  return ends;
}

std::vector<double> ends_of(const network& n) {
  flows f;
  for (const double capacity : n.capacities) f.add_limit(capacity);
  std::vector<double> ends(n.all.size());
  const auto start_of = [&](std::size_t i) {
    return i < n.all.size() ? static_cast<ticks>(std::llround(n.all[i].start * ticks_per_second))
                            : never;
  };
  for (std::size_t next = 0;;) {
    const ticks now = std::min(start_of(next), f.next());
    if (now == never) return ends;
    while (f.next_end() == now) ends[f.end_one(now)] = to_seconds(now);
    for (; start_of(next) == now; ++next) {
      demands through;
      for (const auto& [l, w] : n.all[next].through) through.add(l, w);
      f.start(f.bundle_of(through), n.all[next].bytes, static_cast<std::uint32_t>(next), now);
    }
    f.settle(now);
  }
}

TEST(flows, end_as_progressive_filling_says) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    const network n = make(seed);
    const std::vector<double> ends = ends_of(n), expected = expected_ends(n);
    for (std::size_t i = 0; i < ends.size(); ++i)
      ASSERT_NEAR(ends[i], expected[i], 1e-6 * expected[i]) << "flow " << i << ", seed " << seed;
  }
}

}  // namespace
}  // namespace sucl::sim
