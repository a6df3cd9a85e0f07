// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Cutting a 3-D domain into boxes, one for each rank.
#pragma once

#include "common/program/options.hpp"

#include <sucl/partition.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace apps {

/// Where part `i` of `parts` of `n` things begins; parts differ by at most one.
inline std::int64_t begin_of(std::int64_t n, std::int64_t parts, std::int64_t i) {
  return n / parts * i + (i < n % parts ? i : n % parts);
}

/// The cells from `low` up to, but not including, `high`.
struct box {
  extents low{};
  extents high{};
  std::int64_t extent(std::size_t d) const { return high[d] > low[d] ? high[d] - low[d] : 0; }
  std::int64_t volume() const { return extent(0) * extent(1) * extent(2); }
  extents size() const { return {extent(0), extent(1), extent(2)}; }
};
box intersection(const box& a, const box& b);

/// A grid of ranks over a domain; the last dimension varies fastest.
class rank_grid {
 public:
  /// The grid with the least surface between ranks whose parts have at least `least` cells in each
  /// dimension. Throws usage_error if there is none.
  rank_grid(const extents& domain, int ranks, std::int64_t least = 1);
  /// A given grid.
  rank_grid(const extents& domain, const extents& grid);
  /// The same grid with other parts.
  rank_grid(const rank_grid& like, sucl::box_partition parts);

  const extents& domain() const { return m_domain; }
  const extents& grid() const { return m_grid; }
  extents coordinates(int rank) const;
  /// The rank at these coordinates, which wrap around.
  int rank_at(const extents& at) const;
  /// The rank that has a cell of the domain.
  int owner(const extents& cell) const;
  box part(int rank) const;

 private:
  void cut_evenly();

  extents m_domain;
  extents m_grid;
  sucl::box_partition m_parts;
};

}  // namespace apps
