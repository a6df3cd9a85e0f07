// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Products and sums of sizes that do not wrap.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <limits>
#include <string>

namespace sucl::base {

/// More bytes than any object can have: what a product or a sum is that would wrap.
inline constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
/// The most bytes that an object can have.
inline constexpr std::uint64_t max_bytes = std::numeric_limits<std::int64_t>::max();

/// a * b, or `unlimited`.
constexpr std::uint64_t product(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? unlimited : result;
}
constexpr std::uint64_t product(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
  const std::uint64_t first = product(a, b);
  return first == unlimited && c > 0 ? unlimited : product(first, c);
}

/// a + b, or `unlimited`.
constexpr std::uint64_t sum(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? unlimited : result;
}

/// The multiple of `unit` from `bytes` on, or `unlimited`.
constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) noexcept {
  const std::uint64_t end = sum(bytes, unit - 1);
  return end == unlimited ? unlimited : end / unit * unit;
}

/// Whether [address, address + bytes) lies in [start, start + size).
constexpr bool lies_within(std::uint64_t address, std::uint64_t bytes, std::uint64_t start,
                           std::uint64_t size) noexcept {
  return address >= start && address - start <= size && bytes <= size - (address - start);
}

/// The bytes of `count` elements on each of `blocks` ranks. Throws errc::invalid_count if no
/// address space has them.
inline std::uint64_t bytes_of(std::uint64_t count, std::uint64_t element_size,
                              std::uint64_t blocks = 1) {
  const std::uint64_t bytes = product(count, element_size, blocks);
  if (bytes <= max_bytes) return bytes;
  fail(errc::invalid_count,
       std::to_string(count) + " elements of " + std::to_string(element_size) + " bytes" +
           (blocks > 1 ? " for each of " + std::to_string(blocks) + " ranks" : std::string()) +
           " are beyond any address space",
       "Check the count for a negative number that was converted");
}

}  // namespace sucl::base
