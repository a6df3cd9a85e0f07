// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Transpose's only kernel: it packs, unpacks, and moves what stays on its rank.
#pragma once

#include <sycl/sycl.hpp>

#include <cstdint>

namespace transpose {

/// Copies a box from one array to another that orders its dimensions differently. The dimensions
/// are those of the copy: the last is contiguous in the target, the one before it, if possible, in
/// the source. A group copies a tile of both, so that every cache line is used whole.
struct copy_box {
  std::int64_t extent[3];
  std::int64_t from_start;
  std::int64_t from_stride[3];
  std::int64_t to_start;
  std::int64_t to_stride[3];

  static constexpr std::int64_t width = 64;  ///< of a tile and a group, along the last dimension
  static constexpr std::int64_t depth = 16;  ///< of a tile, along the one before
  std::int64_t tiles_across() const { return (extent[2] + width - 1) / width; }
  std::int64_t tiles_down() const { return (extent[1] + depth - 1) / depth; }
  std::int64_t groups() const { return extent[0] * tiles_down() * tiles_across(); }

  void operator()(sycl::nd_item<1> item, const float* from, float* to) const {
    const auto group = static_cast<std::int64_t>(item.get_group(0));
    const std::int64_t x =
        group % tiles_across() * width + static_cast<std::int64_t>(item.get_local_id(0));
    const std::int64_t top = group / tiles_across() % tiles_down() * depth;
    const std::int64_t outer = group / tiles_across() / tiles_down();
    if (x >= extent[2]) return;
    const std::int64_t rows = extent[1] - top < depth ? extent[1] - top : depth;
    const std::int64_t step = from_stride[2], down = from_stride[1], target = to_stride[1];
    const float* f = from + (from_start + outer * from_stride[0] + top * down);
    float* t = to + (to_start + outer * to_stride[0] + top * target);
    if (step == 1) {
      for (std::int64_t y = 0; y < rows; ++y) t[y * target + x] = f[y * down + x];
    } else {
      for (std::int64_t y = 0; y < rows; ++y) t[y * target + x] = f[y * down + x * step];
    }
  }
};

}  // namespace transpose
