// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "common/grid/grid.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace apps {

box intersection(const box& a, const box& b) {
  box result;
  for (std::size_t d = 0; d < 3; ++d) {
    result.low[d] = std::max(a.low[d], b.low[d]);
    result.high[d] = std::min(a.high[d], b.high[d]);
  }
  return result;
}

rank_grid::rank_grid(const extents& domain, int ranks, std::int64_t least) : m_domain(domain) {
  double smallest = std::numeric_limits<double>::infinity();
  for (std::int64_t a = 1; a <= ranks; ++a) {
    if (ranks % a != 0) continue;
    for (std::int64_t b = 1; b <= ranks / a; ++b) {
      if (ranks / a % b != 0) continue;
      const extents grid{a, b, ranks / a / b};
      double surface = 0;
      bool fits = true;
      for (std::size_t d = 0; d < 3; ++d) {
        fits = fits && domain[d] / grid[d] >= least;
        const double across =
            static_cast<double>(domain[(d + 1) % 3]) * static_cast<double>(domain[(d + 2) % 3]);
        // Cuts of the slower dimensions are preferred: their faces are contiguous.
        if (grid[d] > 1)
          surface += across * static_cast<double>(grid[d]) * (1 + 0.01 * static_cast<double>(d));
      }
      if (fits && surface < smallest) {
        smallest = surface;
        m_grid = grid;
      }
    }
  }
  if (smallest == std::numeric_limits<double>::infinity())
    throw usage_error("a domain of " + print(domain) + " cannot be cut for " +
                      std::to_string(ranks) + " ranks into parts of at least " +
                      std::to_string(least) +
                      " in each dimension. Use fewer ranks or a larger "
                      "domain");
  cut_evenly();
}

rank_grid::rank_grid(const extents& domain, const extents& grid) : m_domain(domain), m_grid(grid) {
  cut_evenly();
}

rank_grid::rank_grid(const rank_grid& like, sucl::box_partition parts)
    : m_domain(like.m_domain), m_grid(like.m_grid), m_parts(std::move(parts)) {}

void rank_grid::cut_evenly() {
  for (std::size_t d = 0; d < 3; ++d)
    m_parts.along[d] = {static_cast<std::size_t>(m_domain[d]), static_cast<int>(m_grid[d])};
}

extents rank_grid::coordinates(int rank) const {
  return {rank / (m_grid[1] * m_grid[2]), rank / m_grid[2] % m_grid[1], rank % m_grid[2]};
}

int rank_grid::rank_at(const extents& at) const {
  extents p{};
  for (std::size_t d = 0; d < 3; ++d) p[d] = (at[d] % m_grid[d] + m_grid[d]) % m_grid[d];
  return static_cast<int>((p[0] * m_grid[1] + p[1]) * m_grid[2] + p[2]);
}

int rank_grid::owner(const extents& cell) const {
  extents at{};
  for (std::size_t d = 0; d < 3; ++d)
    at[d] = m_parts.along[d].owner(static_cast<std::size_t>(cell[d]));
  return rank_at(at);
}

box rank_grid::part(int rank) const {
  const extents at = coordinates(rank);
  box result;
  for (std::size_t d = 0; d < 3; ++d) {
    result.low[d] = static_cast<std::int64_t>(m_parts.along[d].begin(static_cast<int>(at[d])));
    result.high[d] = static_cast<std::int64_t>(m_parts.along[d].end(static_cast<int>(at[d])));
  }
  return result;
}

}  // namespace apps
