// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How much the bits of a result may depend on, and for which reductions that is a question.
#pragma once

#include <sucl/abi/backend.h>
#include <sucl/export.hpp>

#include <cstdint>
#include <string_view>

namespace sucl::base {

/// What gives the same bits again. Each level includes the ones before it.
enum class determinism : std::uint8_t {
  ranks,  ///< all ranks that receive a result
  run,    ///< another run with the same inputs, ranks, placement, configuration and version
  strict  ///< whatever backend executes it, wherever the ranks and the memory are
};

/// The level of this name; `ranks` where there is none.
SUCL_CORE_API determinism determinism_named(std::string_view word) noexcept;
SUCL_CORE_API const char* name(determinism level) noexcept;

/// Whether a reduction has the same bits however its operands are grouped: minima, maxima, logical
/// and bitwise operators, and whatever is done with integers, which wrap, but with nothing that
/// rounds.
SUCL_CORE_API bool associative(sucl_type type, sucl_op op) noexcept;

/// Whether the order in which contributions are combined shows in the result of an operation.
inline bool order_matters(sucl_kind kind, sucl_type type, sucl_op op) noexcept {
  const bool folds = kind == SUCL_KIND_REDUCE || kind == SUCL_KIND_ALLREDUCE ||
                     kind == SUCL_KIND_REDUCE_SCATTER || kind == SUCL_KIND_REDUCE_SCATTER_BLOCK ||
                     kind == SUCL_KIND_SCAN || kind == SUCL_KIND_EXSCAN;
  return folds && !associative(type, op);
}

}  // namespace sucl::base
