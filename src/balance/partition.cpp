// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include <sucl/partition.hpp>

#include "base/error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace sucl {
namespace {

void check_speeds(const std::vector<double>& speeds) {
  double sum = 0;
  for (std::size_t r = 0; r < speeds.size(); ++r) {
    if (!(speeds[r] >= 0) || !std::isfinite(speeds[r]))
      base::fail(errc::invalid_argument,
                 "the speed of rank " + std::to_string(r) + " is " + std::to_string(speeds[r]),
                 "Give finite speeds that are not negative");
    sum += speeds[r];
  }
  if (speeds.empty() || !(sum > 0))
    base::fail(errc::invalid_argument, "no rank has a speed above 0",
               "Give one speed a rank, of which one at least is positive");
}

// What ranks have done by some time, if they have begun with `given`.
counts done_by(double time, const std::vector<double>& speeds, std::size_t given,
               std::size_t most) {
  counts done;
  for (const double s : speeds) {
    const double units = std::min(std::floor(time * s), static_cast<double>(most));
    done.push_back(std::max(given, static_cast<std::size_t>(units)));
  }
  return done;
}

// The same in a scale in which times and units stay within what numbers hold. Exact but for speeds
// that are next to nothing beside the highest: those stay above 0.
std::vector<double> scaled(std::vector<double> speeds) {
  int exponent = 0;
  std::frexp(*std::max_element(speeds.begin(), speeds.end()), &exponent);
  for (double& s : speeds)
    if (s > 0) s = std::max(std::scalbn(s, -exponent), std::numeric_limits<double>::min());
  return speeds;
}

// Units of each rank, so that the last to be done is done as early as can be.
counts units_by_speed(std::size_t units, const std::vector<double>& speeds, std::size_t least) {
  constexpr int halvings = 200;
  const std::size_t given = std::min(least, units / speeds.size());
  const auto fits = [&](const counts& c) {
    std::size_t left = units;
    for (const std::size_t n : c) {
      if (n > left) return false;
      left -= n;
    }
    return true;
  };
  // The last moment before which no more than all is done.
  double low = 0,
         high = static_cast<double>(units) / *std::max_element(speeds.begin(), speeds.end());
  high = 2 * high + std::numeric_limits<double>::min();
  for (int n = 0; n < halvings; ++n) {
    const double middle = low + (high - low) / 2;
    (fits(done_by(middle, speeds, given, units)) ? low : high) = middle;
  }
  counts shares = done_by(low, speeds, given, units);
  std::size_t left = units;
  for (const std::size_t n : shares) left -= n;
  // What is left is done at that moment: a unit each, by those that are first.
  for (; left > 0; --left) {
    std::size_t first = speeds.size();
    double best = 0;
    for (std::size_t r = 0; r < speeds.size(); ++r) {
      if (!(speeds[r] > 0)) continue;
      const double time = (static_cast<double>(shares[r]) + 1) / speeds[r];
      if (first == speeds.size() || time < best) {
        first = r;
        best = time;
      }
    }
    ++shares[first];
  }
  return shares;
}

void check_rank_count(int ranks) {
  if (ranks < 1)
    base::fail(errc::invalid_count, "a partition for " + std::to_string(ranks) + " ranks",
               "Use communicator.size()");
}

}  // namespace

partition::partition(counts of_ranks) : m_counts(std::move(of_ranks)) {
  for (const std::size_t n : m_counts) {
    m_begins.push_back(m_size);
    if (n > std::numeric_limits<std::size_t>::max() - m_size)
      base::fail(errc::invalid_count, "the shares of a partition are beyond any address space",
                 "Check the counts for negative numbers that were converted");
    m_size += n;
  }
}

partition::partition(std::size_t size, int ranks) {
  check_rank_count(ranks);
  const auto n = static_cast<std::size_t>(ranks);
  counts shares;
  for (std::size_t r = 0; r < n; ++r) shares.push_back(size / n + (r < size % n ? 1 : 0));
  *this = partition(std::move(shares));
}

partition partition::by_speed(std::size_t size, const std::vector<double>& speeds, std::size_t unit,
                              std::size_t least) {
  check_speeds(speeds);
  if (unit == 0)
    base::fail(errc::invalid_argument, "shares that are multiples of 0", "Use unit 1 or more");
  const std::size_t units = size / unit + (size % unit != 0);
  counts shares = units_by_speed(units, scaled(speeds), least / unit + (least % unit != 0));
  std::size_t left = size;
  for (std::size_t& n : shares) {
    n = n > left / unit ? left : n * unit;
    left -= n;
  }
  return partition(std::move(shares));
}

void partition::refuse(int rank, int ranks) {
  base::fail(errc::invalid_rank, "rank " + std::to_string(rank) + " of " + std::to_string(ranks),
             "Ranks go from 0 to the partition's ranks() - 1");
}

int partition::owner(std::size_t i) const {
  if (i >= m_size)
    base::fail(errc::invalid_count,
               "element " + std::to_string(i) + " of a range of " + std::to_string(m_size),
               "Elements are counted from 0");
  // The last that begins there or before: those before it with the same beginning are empty.
  return static_cast<int>(std::upper_bound(m_begins.begin(), m_begins.end(), i) -
                          m_begins.begin()) -
         1;
}

migration::migration(const partition& from, const partition& to, int rank) {
  if (from.size() != to.size() || from.ranks() != to.ranks())
    base::fail(errc::mismatch,
               "from a partition of " + std::to_string(from.size()) + " elements on " +
                   std::to_string(from.ranks()) + " ranks to one of " + std::to_string(to.size()) +
                   " on " + std::to_string(to.ranks()),
               "Both must be of the same range and communicator");
  static_cast<void>(from.begin(rank));  // throws where there is no such rank
  // The part of what `a` has by one partition that `b` has by the other.
  const auto common = [](const partition& p, int a, const partition& q, int b) {
    const std::size_t low = std::max(p.begin(a), q.begin(b));
    const std::size_t high = std::min(p.end(a), q.end(b));
    return std::pair{low, high > low ? high - low : 0};
  };
  for (int peer = 0; peer < from.ranks(); ++peer) {
    const auto [out, sent] = common(from, rank, to, peer);
    send_counts.push_back(sent);
    send_displs.push_back(sent ? out - from.begin(rank) : 0);
    const auto [in, received] = common(to, rank, from, peer);
    recv_counts.push_back(received);
    recv_displs.push_back(received ? in - to.begin(rank) : 0);
    moved += from.count(peer) - common(from, peer, to, peer).second;
  }
}

}  // namespace sucl
