// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What reductions do with two operands on the host.
#pragma once

#include <sucl/abi/backend.h>

#include <cstdint>

namespace sucl::fabric {

/// Combines `count` elements of `from` with those of `into`, which takes the result. The same bits
/// if the two are exchanged.
using fold_function = void (*)(const void* from, void* into, std::uint64_t count);

/// Null for what must be rounded once, after all operands: avg, and sums and products of floats of
/// 16 and 8 bits; the core computes these by other means. Null too where the op has no meaning.
fold_function fold_of(sucl_op op, sucl_type type);

}  // namespace sucl::fabric
