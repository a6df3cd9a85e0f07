// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Arithmetic that kernels and the host share.
#pragma once

namespace sample {

inline double combine(double a, double x, double y) { return a * x + y; }

}  // namespace sample
