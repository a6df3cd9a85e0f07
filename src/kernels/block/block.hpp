// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Copying a rectangular block of an array to and from dense memory on a device.
#pragma once

#include "base/elements/strided.hpp"
#include "kernels/collective/args.hpp"

#include <cstdint>

namespace sucl::kernels {

/// A block, counted in units that divide its rows and where they begin.
struct block_layout {
  std::uint64_t units;         ///< of the dense memory
  std::uint64_t row;           ///< of the block
  std::uint64_t rows;          ///< of a plane of the block
  std::uint64_t pitch, plane;  ///< of the array, from row to row and from plane to plane
  std::uint64_t start;         ///< where the block begins

  /// Where unit `i` of the dense memory lies in the array.
  constexpr std::uint64_t offset(std::uint64_t i) const {
    const std::uint64_t r = i / row;
    return start + r / rows * plane + r % rows * pitch + i % row;
  }
};

/// The most bytes, up to `most`, a power of 2, that divide rows and where they begin.
constexpr std::uint64_t unit_of(const base::strided& b, std::uint64_t most) {
  const std::uint64_t all =
      b.element_size * b.range[2] | b.element_size * b.extent[2] | b.element_size * b.offset[2];
  std::uint64_t unit = most;
  while (all % unit != 0) unit /= 2;
  return unit;
}

/// The first `elements` elements of a block, in units of so many bytes.
inline block_layout layout_of(const base::strided& b, std::uint64_t elements, std::uint64_t unit) {
  const std::uint64_t pitch = b.extent[2] * b.element_size / unit;
  return {elements * b.element_size / unit,
          b.range[2] * b.element_size / unit,
          b.range[1],
          pitch,
          pitch * b.extent[1],
          b.array_index(0) * b.element_size / unit};
}

/// Calls `f(unit, offset)` for the units of the dense memory that are this work item's.
template <class Item, class Function>
SUCL_INLINE void each_unit(const Item& at, const block_layout& s, const Function& f) {
  const auto threads = static_cast<std::uint64_t>(at.threads());
  const std::uint64_t stride = static_cast<unsigned>(at.groups()) * threads;
  for (std::uint64_t i =
           static_cast<unsigned>(at.group()) * threads + static_cast<unsigned>(at.thread());
       i < s.units; i += stride)
    f(i, s.offset(i));
}

template <class Unit, class Item>
SUCL_INLINE void pack(const Item& at, const block_layout& s, Unit* dense, const Unit* array) {
  each_unit(at, s, [&](std::uint64_t i, std::uint64_t offset) { dense[i] = array[offset]; });
}

/// Touches nothing besides the block.
template <class Unit, class Item>
SUCL_INLINE void unpack(const Item& at, const block_layout& s, Unit* array, const Unit* dense) {
  each_unit(at, s, [&](std::uint64_t i, std::uint64_t offset) { array[offset] = dense[i]; });
}

}  // namespace sucl::kernels
