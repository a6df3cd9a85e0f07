// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A rectangular block of an array, and copying it to and from dense memory.
#pragma once

#include <sucl/export.hpp>

#include <algorithm>
#include <array>
#include <cstdint>

namespace sucl::base {

/// A block of an array of one to three dimensions, all in elements, the slowest dimension first
/// (row-major, as sycl::range); an array of fewer dimensions has leading extents of 1. The
/// elements of the block are numbered row by row from 0: its dense order.
struct strided {
  std::array<std::uint64_t, 3> extent{1, 1, 1};  ///< of the array
  std::array<std::uint64_t, 3> offset{0, 0, 0};  ///< where the block starts
  std::array<std::uint64_t, 3> range{1, 1, 1};   ///< of the block
  std::uint64_t element_size = 1;                ///< bytes

  /// Elements of the block.
  std::uint64_t count() const noexcept { return range[0] * range[1] * range[2]; }

  /// Elements of the block that lie together in the array, from each start of a row on.
  std::uint64_t run() const noexcept {
    if (range[2] != extent[2]) return range[2];
    if (range[1] != extent[1]) return range[2] * range[1];
    return count();
  }

  /// Whether the whole block lies together, so that array_index(0) and count() say it all.
  bool contiguous() const noexcept { return count() == 0 || run() == count(); }

  /// Whether two blocks of an array have elements in common.
  bool meets(const strided& other) const noexcept {
    for (std::size_t d = 0; d < 3; ++d)
      if (offset[d] + range[d] <= other.offset[d] || other.offset[d] + other.range[d] <= offset[d])
        return false;
    return true;
  }

  /// The element of the array that is element `index` of the block.
  std::uint64_t array_index(std::uint64_t index) const noexcept {
    const std::uint64_t row = index / range[2];
    return ((offset[0] + row / range[1]) * extent[1] + offset[1] + row % range[1]) * extent[2] +
           offset[2] + index % range[2];
  }

  /// Calls visit(at, index, length) for each piece of the block's elements [first, first + n)
  /// that lies together in the array, in dense order.
  template <class Visit>
  void for_each_run(std::uint64_t first, std::uint64_t n, Visit&& visit) const {
    if (n == 0) return;
    const std::uint64_t whole = run();
    std::uint64_t length = std::min(n, whole - first % whole);
    for (const std::uint64_t end = first + n; first < end;
         first += length, length = std::min(end - first, whole))
      visit(array_index(first), first, length);
  }
};

/// Copies the block's elements [first, first + n) from the array to dense memory.
SUCL_CORE_API void pack(const strided& block, void* dense, const void* array, std::uint64_t first,
                        std::uint64_t n);

/// Copies dense memory to the block's elements [first, first + n); touches nothing else.
SUCL_CORE_API void unpack(const strided& block, void* array, const void* dense, std::uint64_t first,
                          std::uint64_t n);

}  // namespace sucl::base
