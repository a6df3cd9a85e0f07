// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// One rank's part of a verified plan, as a kernel interprets it. Plain data, the same for device
/// and host.
///
/// Each message of the plan has a *slot* of its own in memory of its receiver. There are two sets
/// of slots, which runs use in turns. A plan with messages that something else moves is executed by
/// several kernels, its *waves*, with these messages in between.
#pragma once

#include "kernels/collective/args.hpp"

#include <cstdint>

namespace sucl::kernels {

/// The most channels of a plan, and sources of one fold of it.
inline constexpr int max_plan_channels = 16;
inline constexpr int max_plan_sources = max_ranks;

enum class plan_action : std::int32_t {
  fold,  ///< at <- the combination of the sources; of one, a copy
  send,  ///< a message from `at` to its slot at `peer`
  take,  ///< waits for a message of `peer`, and copies it to `at`, unless it is read in its slot
  wait   ///< until the channel `peer` of this rank has done its steps before number `value`
};

/// Where memory of this rank is. What is in `lines` is a message in its slot, as LL128 has it.
enum class plan_space : std::int32_t { send, recv, scratch, slots, lines };

/// How a message goes: at once, behind a flag of each work group; or in lines with flags of their
/// own, by LL or LL128.
enum class plan_protocol : std::int32_t { bulk, ll, ll128 };

/// LL128 lines of a message: those of each run of bytes that is a work group's own begin with a row
/// of their own.
inline constexpr std::uint64_t lines_row = 4 * ll128_line, lines_row_data = 4 * ll128_data;
/// Where they begin: of a run that has `before` bytes before it, in so many runs.
constexpr std::uint64_t lines_of_run(std::uint64_t before, std::uint64_t runs) {
  return ((before + lines_row_data - 1) / lines_row_data + runs) * lines_row;
}

struct plan_operand {
  std::uint64_t offset;  ///< bytes
  plan_space where;
  std::int32_t unused;
};

struct plan_step {
  plan_action what;
  std::int32_t peer;
  std::uint64_t bytes;
  plan_operand at;
  std::uint64_t slot;   ///< of a message, in its receiver's slots
  std::uint64_t flag;   ///< of a message: the number of the flag in its receiver's memory,
  std::uint64_t value;  ///< and how far that has to be
  std::uint32_t first;  ///< of the sources of a fold, in the list of operands
  std::uint32_t sources;
  plan_protocol how;           ///< of a message; of a fold, ll128: sources of it are in lines
  std::int32_t stays_in_slot;  ///< 1: the message is read in its slot
};

/// A wave of a run of a plan. Of what collective_args say it uses what is about ranks, peer buffers
/// and epochs.
struct plan_args : collective_args {
  const plan_step* steps;  ///< channel after channel
  const plan_operand* operands;
  const std::uint32_t*
      bounds;                ///< where the wave's steps begin in each channel, then where they end
  std::byte* const* memory;  ///< of each rank, as this one reaches it: flags, then slots
  std::byte* scratch;
  std::uint64_t slots;  ///< where those of this run begin in the memory of every rank
  /// Work group g has the bytes of each space from `stripe` * g on in every `period` of it. All
  /// that a plan moves keeps its offset in the period, so groups need nothing of each other.
  std::uint64_t period, stripe;
  std::int32_t channels;
  std::int32_t continues;  ///< 1: this is not the run's first kernel, and has the epoch of that
};

}  // namespace sucl::kernels
