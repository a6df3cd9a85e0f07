// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Kernels of the test: a plain one, one with a header of its own, a template, one with memory of
/// the work group.
#pragma once

#include <sycl/sycl.hpp>

#include "kernels/sample_math.hpp"

#include <cstddef>
#include <cstdint>

namespace sample {

struct axpy {
  double a;
  std::int64_t n;
  void operator()(sycl::nd_item<1> item, const double* x, double* y) const {
    const auto i = static_cast<std::int64_t>(item.get_global_id(0));
    if (i < n) y[i] = combine(a, x[i], y[i]);
  }
};

struct grid {
  int rows, columns;
  double weights[3];
};

/// Parameters that are themselves structs with arrays.
struct weigh {
  grid of;
  void operator()(sycl::nd_item<1> item, const float* in, float* out) const {
    const auto i = static_cast<int>(item.get_global_id(0));
    if (i < of.rows * of.columns)
      out[i] = static_cast<float>(of.weights[i % 3]) * in[i] + static_cast<float>(i / of.columns);
  }
};

template <class T>
struct fill {
  T value;
  std::int64_t n;
  void operator()(sycl::nd_item<1> item, T* out) const {
    const auto i = static_cast<std::int64_t>(item.get_global_id(0));
    if (i < n) out[i] = value + static_cast<T>(i);
  }
};

/// Each item of a group has the sum of what the group was given, by way of the group's own memory.
struct sum_of_group {
  void operator()(sycl::nd_item<1> item, const int* in, int* out, int* shared) const {
    const auto i = item.get_local_id(0), n = item.get_local_range(0);
    shared[i] = in[item.get_global_id(0)];
    sycl::group_barrier(item.get_group());
    int sum = 0;
    for (std::size_t k = 0; k < n; ++k) sum += shared[k];
    out[item.get_global_id(0)] = sum;
  }
};

}  // namespace sample
