// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which instructions are one fold: what the executor evaluates and the verifier proves.
#pragma once

#include "plan/ir/schedule.hpp"

#include <cstdint>

namespace sucl::plan {

/// Most sources of a fold; what has more is folded by several, each of which rounds.
inline constexpr std::uint32_t max_fold_sources = 64;

/// Whether an instruction writes its destination itself, without a receive.
constexpr bool moves(opcode op) noexcept {
  return op == opcode::copy || op == opcode::reduce || op == opcode::put || op == opcode::get;
}

/// Whether instruction `now` of a channel adds its source to the fold that the one before it began
/// or went on with: a copy or a reduction, followed by reductions into the same bytes. The sources
/// are folded in the order of the instructions, in a type that may be wider than the elements, and
/// rounded once.
constexpr bool goes_on(const instruction& before, const instruction& now) noexcept {
  return now.op == opcode::reduce && moves(before.op) && before.dst == now.dst &&
         (!is_remote(now.dst) || before.peer == now.peer) && before.dst_offset == now.dst_offset &&
         before.bytes == now.bytes;
}

}  // namespace sucl::plan
