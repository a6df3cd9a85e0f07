// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Small caches of what was worked out for calls that come again.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace sucl::base {

/// A number below 2^Bits from a key of any size. Multiplied by 2^64 over the golden ratio, of which
/// the high bits count: memory lies at like distances, and must not collide.
template <int Bits>
constexpr std::size_t spread(std::uint64_t key) noexcept {
  static_assert(Bits > 0 && Bits < 64);
  return static_cast<std::size_t>(key * 0x9e3779b97f4a7c15u >> (64 - Bits));
}

/// One key of several numbers, which do not wait for each other. Of the distances to turn by it is
/// one with few collisions of buffers that move together.
template <class... Numbers>
constexpr std::uint64_t key_of(Numbers... numbers) noexcept {
  std::uint64_t key = 0;
  int turned = 0;
  ((key += std::rotl(static_cast<std::uint64_t>(numbers), turned), turned += 39), ...);
  return key;
}

/// A direct-mapped cache: a key has one slot, and what comes later replaces what was there. Entries
/// say themselves what they are of, and a look-up compares. Not initialised, so that one in
/// zeroed memory needs no constructor.
template <class Entry, std::size_t Slots>
class direct_cache {
  static_assert(std::has_single_bit(Slots) && Slots > 1);

 public:
  Entry& slot(std::uint64_t key) noexcept {
    return m_entries[spread<std::countr_zero(Slots)>(key)];
  }
  void clear() { m_entries = {}; }

 private:
  std::array<Entry, Slots> m_entries;
};

}  // namespace sucl::base
