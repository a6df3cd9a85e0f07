// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The SYCL header, and the element types that only SYCL has.
#pragma once

#include <sycl/sycl.hpp>

#include <sucl/types.hpp>

namespace sucl {

/// sycl::half is IEEE binary16.
template <>
struct type_of<::sycl::half> {
  static constexpr type value = type::fp16;
};

#if defined(SYCL_EXT_ONEAPI_BFLOAT16_MATH_FUNCTIONS) || defined(SYCL_EXT_ONEAPI_BFLOAT16)
/// DPC++'s bfloat16.
template <>
struct type_of<::sycl::ext::oneapi::bfloat16> {
  static constexpr type value = type::bf16;
};
#endif

}  // namespace sucl
