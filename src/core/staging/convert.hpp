// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Reductions that a backend lacks, expressed by ones that it has.
#pragma once

#include <sucl/abi/backend.h>

#include <cstddef>
#include <cstdint>

namespace sucl::core {

/// Executes a reduction as another one. `user` below is elements of the caller's type, `wire`
/// `components` times as many elements of `type`; the memory must not overlap, except where `load`
/// is null.
struct conversion {
  sucl_type type;            ///< what is sent instead
  sucl_op op;                ///< and how that is reduced
  std::uint32_t components;  ///< elements of `type` for one element of the caller's
  /// Caller's elements to wire elements. Null: they are the same.
  void (*load)(void* wire, const void* user, std::size_t elements);
  /// Reduced wire elements to the caller's. Null: they are the same. Where `load` is null, `user`
  /// may be `wire`.
  void (*store)(void* user, const void* wire, std::size_t elements, int ranks);
};

/// The substitute for a missing `op` on `type`, or null if there is none.
///
/// Floats of 16 and 8 bits are sent as fp32 and are rounded once, to nearest even. An average
/// is a sum: of the same type for fp32, fp64 and complex; of int64 for integers of up to 32 bits;
/// and for 64-bit integers as two sums, of the upper and of the lower 32 bits of each element,
/// which cannot overflow. Integer averages are exact and rounded toward zero.
const conversion* conversion_for(sucl_type type, sucl_op op) noexcept;

}  // namespace sucl::core
