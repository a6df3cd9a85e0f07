// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The kernels of conjugate gradients with one fused reduction an iteration: A. Chronopoulos and
/// C. W. Gear, s-step iterative methods for symmetric linear systems, J. Comput. Appl. Math. 25
/// (1989) 153-168.
#pragma once

#include <sycl/sycl.hpp>

#include <cstdint>

namespace cg {

/// The scalars of an iteration. `sums` has (r, r) and (r, Ar) of all ranks; `state` the (r, r) and
/// alpha of the iteration before, zero in the first one.
struct step_scalars {
  double alpha, beta;
  step_scalars(const double* sums, const double* state) {
    const double gamma = sums[0], delta = sums[1];
    beta = state[0] == 0 ? 0 : gamma / state[0];
    const double divisor = beta == 0 ? delta : delta - beta * gamma / state[1];
    alpha = gamma == 0 ? 0 : gamma / divisor;
  }
};

/// w = A r for the rows of a list. Columns beyond the own rows are the halo's.
struct multiply_rows {
  std::int64_t count;
  std::int32_t own;
  void operator()(sycl::nd_item<1> item, const std::int32_t* list, const std::int64_t* start,
                  const std::int32_t* column, const double* value, const double* r,
                  const double* halo, double* w) const {
    const auto i = static_cast<std::int64_t>(item.get_global_id(0));
    if (i >= count) return;
    const std::int32_t row = list[i];
    double sum = 0;
    for (std::int64_t k = start[row]; k < start[row + 1]; ++k) {
      const std::int32_t j = column[k];
      sum += value[k] * (j < own ? r[j] : halo[j - own]);
    }
    w[row] = sum;
  }
};

/// The same for rows that need no halo, so that they need not wait for it.
struct multiply_inner {
  std::int64_t count;
  void operator()(sycl::nd_item<1> item, const std::int32_t* list, const std::int64_t* start,
                  const std::int32_t* column, const double* value, const double* r,
                  double* w) const {
    const auto i = static_cast<std::int64_t>(item.get_global_id(0));
    if (i >= count) return;
    const std::int32_t row = list[i];
    double sum = 0;
    for (std::int64_t k = start[row]; k < start[row + 1]; ++k) sum += value[k] * r[column[k]];
    w[row] = sum;
  }
};

/// Sums of (r, r) and (r, w) over every n-th element, one pair for each work item.
struct partial_sums {
  std::int64_t rows;
  void operator()(sycl::nd_item<1> item, const double* r, const double* w, double* parts) const {
    const auto i = static_cast<std::int64_t>(item.get_global_id(0));
    const auto n = static_cast<std::int64_t>(item.get_global_range(0));
    double gamma = 0, delta = 0;
    for (std::int64_t k = i; k < rows; k += n) {
      gamma += r[k] * r[k];
      delta += r[k] * w[k];
    }
    parts[i] = gamma;
    parts[n + i] = delta;
  }
};

/// One work item: adds the parts up, and keeps what the next iteration needs of this one.
struct finish_sums {
  std::int64_t parts;
  std::int64_t is_first;
  void operator()(sycl::nd_item<1> item, const double* from, double* sums, double* state) const {
    if (item.get_global_id(0) != 0) return;
    if (is_first != 0) {
      state[0] = state[1] = 0;
    } else {
      const step_scalars s(sums, state);
      state[0] = sums[0];
      state[1] = s.alpha;
    }
    sums[0] = sums[1] = 0;
    for (std::int64_t i = 0; i < parts; ++i) {
      sums[0] += from[i];
      sums[1] += from[parts + i];
    }
  }
};

/// p = r + beta p, s = w + beta s, x += alpha p, r -= alpha s.
struct update {
  std::int64_t rows;
  void operator()(sycl::nd_item<1> item, const double* sums, const double* state, const double* w,
                  double* p, double* s, double* x, double* r) const {
    const auto i = static_cast<std::int64_t>(item.get_global_id(0));
    if (i >= rows) return;
    const step_scalars now(sums, state);
    p[i] = r[i] + now.beta * p[i];
    s[i] = w[i] + now.beta * s[i];
    x[i] += now.alpha * p[i];
    r[i] -= now.alpha * s[i];
  }
};

/// The start: x = p = s = 0, r = b.
struct reset {
  std::int64_t rows;
  void operator()(sycl::nd_item<1> item, const double* b, double* p, double* s, double* x,
                  double* r) const {
    const auto i = static_cast<std::int64_t>(item.get_global_id(0));
    if (i >= rows) return;
    p[i] = s[i] = x[i] = 0;
    r[i] = b[i];
  }
};

}  // namespace cg
