// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which floats are narrow.
#pragma once

#include <sucl/abi/backend.h>

#include <cstdint>

namespace sucl::base {

/// Whether elements are floats that are combined in fp32 and rounded once, at the end.
constexpr bool is_narrow_float(std::int32_t type) noexcept {
  return type == SUCL_TYPE_FP16 || type == SUCL_TYPE_BF16 || type == SUCL_TYPE_FP8_E4M3 ||
         type == SUCL_TYPE_FP8_E5M2;
}

}  // namespace sucl::base
