// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Kernels of the test: a plain one, one with a header of its own, a template.
#pragma once

#include <sycl/sycl.hpp>

#include "kernels/sample_math.hpp"

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

struct shape {
  int rows, columns;
  double weights[3];
};

/// Parameters that are themselves structs with arrays.
struct weigh {
  shape of;
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

}  // namespace sample
