// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// All that proofs assume about operators.
#pragma once

#include <cstdint>

namespace sucl::plan {

/// What the verifier takes for granted about the operators of a plan, bit for bit. No operator is
/// taken for associative.
struct fold_rules {
  /// `a op b` and `b op a` have the same bits. True of every operator that SuCL has
  /// (base/fold_elements.hpp).
  bool commutative = true;
  /// A fold of several sources keeps its partial results in a wider type, so that folding a result
  /// once more is something else. True of elements of 16 bits and less: they may be floats.
  bool widens = false;

  static fold_rules of(std::uint64_t element_bytes) { return {true, element_bytes <= 2}; }
};

}  // namespace sucl::plan
