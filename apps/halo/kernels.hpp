// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Halo's stencil, and copies of boxes.
#pragma once

#include <sycl/sycl.hpp>

#include <cstdint>

namespace halo {

/// The mean of the 27 points around each point of a box, weighted by 1/4, 1/2, 1/4 in each
/// dimension: a step of diffusion that reads faces, edges and corners. A group works on a row.
struct smooth {
  std::int64_t low[3];   ///< where the box begins in the array
  std::int64_t size[3];  ///< of the box
  std::int64_t plane;    ///< elements from one plane of the array to the next
  std::int64_t row;      ///< from one row to the next

  static float line(const float* p, std::int64_t row) { return (p[-row] + p[row]) + 2.0f * p[0]; }
  static float square(const float* p, std::int64_t plane, std::int64_t row) {
    return (line(p - plane, row) + line(p + plane, row)) + 2.0f * line(p, row);
  }
  static float mean(const float* p, std::int64_t plane, std::int64_t row) {
    return ((square(p - 1, plane, row) + square(p + 1, plane, row)) +
            2.0f * square(p, plane, row)) *
           (1.0f / 64.0f);
  }
  void operator()(sycl::nd_item<1> item, const float* from, float* to) const {
    const auto group = static_cast<std::int64_t>(item.get_group(0));
    const auto lanes = static_cast<std::int64_t>(item.get_local_range(0));
    const std::int64_t start =
        (low[0] + group / size[1]) * plane + (low[1] + group % size[1]) * row + low[2];
    for (auto k = static_cast<std::int64_t>(item.get_local_id(0)); k < size[2]; k += lanes)
      to[start + k] = mean(from + start + k, plane, row);
  }
};

/// Where the points of a box are in an array: the first one, and how far its planes and its rows
/// are from one another.
struct placement {
  std::int64_t start, plane, row;
};

/// Copies a box from one array to another. A group works on a row.
struct copy_box {
  std::int64_t rows;    ///< of each plane
  std::int64_t length;  ///< of each row
  placement at, to;

  void operator()(sycl::nd_item<1> item, const float* from, float* copy) const {
    const auto group = static_cast<std::int64_t>(item.get_group(0));
    const auto lanes = static_cast<std::int64_t>(item.get_local_range(0));
    const std::int64_t i = group / rows, j = group % rows;
    const std::int64_t first = at.start + i * at.plane + j * at.row;
    const std::int64_t target = to.start + i * to.plane + j * to.row;
    for (auto k = static_cast<std::int64_t>(item.get_local_id(0)); k < length; k += lanes)
      copy[target + k] = from[first + k];
  }
};

}  // namespace halo
