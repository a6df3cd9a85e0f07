// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Reductions of the mock backend: one naive loop, kept apart from the library's own arithmetic so
/// that each can prove the other wrong.
#pragma once

#include <sucl/abi/backend.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sucl::mock {

/// Bytes of one element; 0 for SUCL_TYPE_BYTES and for numbers that are no type.
std::uint64_t size_of(sucl_type type);

/// Whether `op` is defined for `type`.
bool defined(sucl_op op, sucl_type type);

/// out[i] = inputs[0][i] op inputs[1][i] op ... for `count` elements, folded in that order as
/// docs/reference/operations.md says. SUCL_OP_AVG divides the sum by `ranks`. No alignment needed;
/// `out` may be one of the inputs. `op` must be defined for `type`.
void reduce(sucl_type type, sucl_op op, const std::vector<const std::byte*>& inputs,
            std::uint64_t count, int ranks, std::byte* out);

}  // namespace sucl::mock
