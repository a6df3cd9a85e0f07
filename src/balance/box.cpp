// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Boxes of a rectilinear cut. Finding the best one is hard in three dimensions; this goes from one
// dimension to the next, each time with the best cut while the others stay (Nicol, "Rectilinear
// partitioning of irregular data parallel computations", 1994), and keeps the best it has seen.
#include "base/error.hpp"

#include <sucl/partition.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace sucl {
namespace {

constexpr int rounds = 8;

struct grid_position {
  std::array<int, 3> at;
};

grid_position position_of(int rank, const std::array<int, 3>& grid) {
  return {{rank / (grid[1] * grid[2]), rank / grid[2] % grid[1], rank % grid[2]}};
}

// What rank's box has across dimension `d`.
double section(const box_partition& p, const grid_position& r, std::size_t d) {
  double cells = 1;
  for (std::size_t other = 0; other < 3; ++other)
    if (other != d) cells *= static_cast<double>(p.along[other].count(r.at[other]));
  return cells;
}

double slowest(const box_partition& p, const std::array<int, 3>& grid,
               const std::vector<double>& speeds) {
  double most = 0;
  for (std::size_t r = 0; r < speeds.size(); ++r) {
    const grid_position at = position_of(static_cast<int>(r), grid);
    const double cells = section(p, at, 0) * static_cast<double>(p.along[0].count(at.at[0]));
    if (cells > 0)
      most = std::max(most,
                      speeds[r] > 0 ? cells / speeds[r] : std::numeric_limits<double>::infinity());
  }
  return most;
}

// Layers a second of each slab: those of its slowest rank.
std::vector<double> slab_speeds(const box_partition& p, std::size_t d,
                                const std::array<int, 3>& grid, const std::vector<double>& speeds) {
  std::vector<double> slabs(static_cast<std::size_t>(grid[d]),
                            std::numeric_limits<double>::infinity());
  for (std::size_t r = 0; r < speeds.size(); ++r) {
    const grid_position at = position_of(static_cast<int>(r), grid);
    const double cells = section(p, at, d);
    double& slab = slabs[static_cast<std::size_t>(at.at[d])];
    if (cells > 0) slab = std::min(slab, speeds[r] / cells);
  }
  for (double& s : slabs)
    if (s == std::numeric_limits<double>::infinity()) s = 0;
  return slabs;
}

}  // namespace

box_partition box_partition::by_speed(const std::array<std::size_t, 3>& cells,
                                      const std::array<int, 3>& grid,
                                      const std::vector<double>& speeds, std::size_t least) {
  for (const int n : grid)
    if (n < 1 || static_cast<std::size_t>(n) > speeds.size())
      base::fail(errc::invalid_count, "a grid with " + std::to_string(n) + " ranks in a dimension",
                 "Give a grid of as many ranks as there are speeds");
  const std::size_t ranks = static_cast<std::size_t>(grid[0]) * static_cast<std::size_t>(grid[1]) *
                            static_cast<std::size_t>(grid[2]);
  if (ranks != speeds.size())
    base::fail(errc::invalid_count,
               "a grid of " + std::to_string(ranks) + " ranks and " +
                   std::to_string(speeds.size()) + " speeds",
               "Give one speed a rank");
  box_partition best;
  for (std::size_t d = 0; d < 3; ++d) best.along[d] = partition(cells[d], grid[d]);
  (void)partition::by_speed(1, speeds);  // throws what is wrong with them
  double min_time = slowest(best, grid, speeds);
  box_partition now = best;
  for (int round = 0; round < rounds; ++round)
    for (std::size_t d = 0; d < 3; ++d) {
      const auto slabs = slab_speeds(now, d, grid, speeds);
      if (std::none_of(slabs.begin(), slabs.end(), [](double s) { return s > 0; })) continue;
      now.along[d] = partition::by_speed(cells[d], slabs, 1, least);
      const double time = slowest(now, grid, speeds);
      if (time >= min_time) continue;
      min_time = time;
      best = now;
    }
  return best;
}

box_balancer::box_balancer(const std::array<std::size_t, 3>& cells, const std::array<int, 3>& grid,
                           const std::vector<double>& speeds, const balance_options& how)
    : m_cells(cells),
      m_grid(grid),
      m_current(box_partition::by_speed(cells, grid, speeds, how.least)),
      m_speeds(static_cast<int>(speeds.size()), how) {}

void box_balancer::note_move(const std::vector<double>& seconds) { m_speeds.note_move(seconds); }

bool box_balancer::update(const std::vector<double>& seconds, int steps) {
  m_speeds.check(seconds, steps);
  counts work;
  for (std::size_t r = 0; r < m_speeds.known().size(); ++r) {
    const grid_position at = position_of(static_cast<int>(r), m_grid);
    work.push_back(m_current.along[0].count(at.at[0]) * m_current.along[1].count(at.at[1]) *
                   m_current.along[2].count(at.at[2]));
  }
  m_speeds.note(seconds, work);
  const auto speeds = m_speeds.complete();
  auto next = box_partition::by_speed(m_cells, m_grid, speeds, m_speeds.options().least);
  if (!m_speeds.is_worth_it(slowest(m_current, m_grid, speeds), slowest(next, m_grid, speeds),
                            steps))
    return false;
  m_current = std::move(next);
  return true;
}

}  // namespace sucl
