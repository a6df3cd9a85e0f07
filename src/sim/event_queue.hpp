// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What is to happen in simulated time, the soonest first.
#pragma once

#include "sim/flows.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace sucl::sim {

/// A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan 1990): entries lie in buckets by the highest bit
/// in which their time differs from that of the last pop, before which nothing may be pushed. An
/// entry moves a few times in all, to ever lower buckets. What has one time lies in one bucket,
/// and so comes in the order in which it was pushed.
template <class Entry>
class event_queue {
 public:
  /// Entry::at is its time, at or after that of the last pop.
  void push(const Entry& e) { put(e, bucket_of(e.at)); }

  /// The time of the next entry; never, if there is none.
  ticks next() const {
    if (m_filled == 0) return never;
    return m_first[static_cast<std::size_t>(std::countr_zero(m_filled))];
  }

  /// Takes the next entry out. Only where there is one.
  Entry pop() {
    if ((m_filled & 1) == 0) spread();
    const Entry e = m_buckets[0][m_popped++];
    if (m_popped == m_buckets[0].size()) {
      m_buckets[0].clear();
      m_popped = 0;
      m_filled &= ~std::uint64_t{1};
    }
    return e;
  }

 private:
  // Bucket 0 has the time of the last pop; times are not negative, so 64 are enough.
  std::size_t bucket_of(ticks at) const {
    return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(at ^ m_last)));
  }
  void put(const Entry& e, std::size_t b) {
    const std::uint64_t bit = std::uint64_t{1} << b;
    if ((m_filled & bit) == 0 || e.at < m_first[b]) m_first[b] = e.at;
    m_filled |= bit;
    m_buckets[b].push_back(e);
  }
  // Spreads the lowest bucket over those below it, which are empty.
  void spread() {
    const auto lowest = static_cast<std::size_t>(std::countr_zero(m_filled));
    m_last = m_first[lowest];
    m_filled &= ~(std::uint64_t{1} << lowest);
    for (const Entry& e : m_buckets[lowest]) put(e, bucket_of(e.at));
    m_buckets[lowest].clear();
  }

  std::array<std::vector<Entry>, 64> m_buckets;
  std::array<ticks, 64> m_first{};  // the earliest time of each
  std::uint64_t m_filled = 0;       // a bit for each
  std::size_t m_popped = 0;         // of the first bucket
  ticks m_last = 0;
};

}  // namespace sucl::sim
