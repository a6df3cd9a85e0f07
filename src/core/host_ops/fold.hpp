// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Reductions on the host, for every type and op, with the widest vectors that the processor has.
#pragma once

#include <sucl/abi/backend.h>
#include <sucl/export.hpp>

#include <cstddef>
#include <cstdint>

namespace sucl::core {

/// Combines element i of all `sources` (at least one, in order) into element i of `to`, which may
/// be one of them and must not overlap any otherwise. No alignment is needed. 16-bit floats and the
/// integers of avg are combined in a wider type and rounded once; `divisor` is what avg divides by.
using fold_function = void (*)(void* to, const void* const* from, std::size_t sources,
                               std::uint64_t count, int divisor);

/// The function for a type and an op; null where the op is not defined. The same on every rank in
/// what it computes, whatever the processor.
SUCL_CORE_API fold_function find_fold(sucl_type type, sucl_op op) noexcept;

/// The same into memory that is written by non-temporal stores, whose elements have `element_size`
/// bytes. `to` is none of the sources.
SUCL_CORE_API void fold_nontemporal(fold_function fold, std::uint64_t element_size, std::byte* to,
                                    const void** from, std::size_t sources, std::uint64_t count,
                                    int divisor) noexcept;

/// Instruction sets that this build has kernels for and this processor runs, best first.
enum class instruction_set { avx512, avx2, baseline };
SUCL_CORE_API instruction_set best_instruction_set() noexcept;
SUCL_CORE_API const char* name(instruction_set set) noexcept;
/// find_fold() of one of them; `set` must not be better than the best.
SUCL_CORE_API fold_function find_fold(instruction_set set, sucl_type type, sucl_op op) noexcept;

}  // namespace sucl::core
