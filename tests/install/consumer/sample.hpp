// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sycl/sycl.hpp>

#include <cstddef>

struct scale {
  double factor;
  std::size_t n;
  void operator()(sycl::nd_item<1> item, double* values) const {
    const std::size_t i = item.get_global_id(0);
    if (i < n) values[i] = factor * static_cast<double>(i);
  }
};
