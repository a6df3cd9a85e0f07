// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What a kernel is told of a collective operation. Plain data, the same for device and host.
///
/// Ranks write to each other through lanes: memory that rank r writes and rank q reads, on q's
/// device if r reaches it. A lane has words, then lines of the low-latency protocol, then staging
/// memory; of the last two there are two halves, and operations use them in turns. An operation has
/// a number, its epoch, the same on every rank. Words only grow: epoch times most_steps plus a
/// step.
#pragma once

#include "kernels/layout.hpp"

#include <cstddef>
#include <cstdint>

/// Kernels are one function each: what is called costs every work item memory of its own for what
/// is passed by reference.
#define SUCL_INLINE [[gnu::always_inline]] inline

namespace sucl::kernels {

inline constexpr int most_ranks = 32;
inline constexpr int most_groups = 256;
/// Steps of a work group in an operation: enough for 256 GiB in the smallest pieces. What is left
/// of a word counts operations for years.
inline constexpr std::uint64_t most_steps = 1 << 20;

/// Words of a lane, one a work group each.
enum class word : std::uint64_t {
  ready,        ///< steps whose data is there
  freed,        ///< of the lane the other way: steps that were read
  ready_later,  ///< the same for the second phase
  freed_later,
  entered,  ///< the writer is in this operation, and has said where its memory is:
  keys,     ///< in two more words, for operations of even and of odd number
  keys_end = keys + 4,
  begun = keys_end,  ///< the last operation that the writer has begun; of the first group only
  count
};

inline constexpr std::uint64_t words_bytes =
    static_cast<std::uint64_t>(word::count) * most_groups * sizeof(std::uint64_t);

/// Sizes of a lane, in bytes, the same on every rank.
struct lane_shape {
  std::uint64_t small = 0;  ///< most data that goes through lines, of one half; of rows
  std::uint64_t wide = 0;   ///< wide lines, of one half; 0: there are none
  std::uint64_t stage = 0;  ///< staging memory, of one half
  message_shape messages;   ///< behind them
  constexpr std::uint64_t of_collectives() const {
    return words_bytes + 2 * (2 * small + wide + stage);
  }
  constexpr std::uint64_t bytes() const { return of_collectives() + messages.bytes(); }
};

/// How data travels.
enum class way : std::int32_t {
  small,   ///< in lines, pushed to every peer
  staged,  ///< pushed in pieces into staging memory
  /// The message is cut in a slice a rank. Each is brought to its rank, which combines it, and
  /// brought from there to the others: in pieces, or, where all of the memory is mapped, directly.
  two_shot,
  small_two_shot,  ///< the same in lines, each slice as a whole
  wide,            ///< as small, in wide lines
};
/// What tuning tables call them.
inline constexpr const char* way_names[] = {"small", "staged", "two_shot", "small_two_shot",
                                            "wide"};

/// Quads whose first lines lie together, and then their second ones.
inline constexpr std::uint64_t line_row = 512;

/// A wide line: what eight neighbouring work items store at once, 15 words of data and the number
/// of the operation. A device must keep such a store whole: over NVLink they do.
inline constexpr std::uint64_t wide_line = 128, wide_data = 120;
inline constexpr int wide_parts = 8;
/// Memory for so much data in wide lines, in whole rows of 32 work items.
constexpr std::uint64_t wide_bytes(std::uint64_t data) {
  constexpr std::uint64_t row = 4 * wide_data;
  return (data + row - 1) / row * 4 * wide_line;
}

/// The slice of a rank in a small_two_shot.
constexpr std::uint64_t line_slice(std::uint64_t bytes, int ranks) {
  const auto n = static_cast<std::uint64_t>(ranks);
  const std::uint64_t unit = bytes < n * line_row ? 16 : line_row;
  return ((bytes + n - 1) / n + unit - 1) / unit * unit;
}

/// The lanes of a rank, in memory of its device: they are the same for all operations.
struct lanes {
  std::byte* out[most_ranks];       ///< the lane to each peer, as this rank reaches it
  const std::byte* in[most_ranks];  ///< the lane from each peer
};

/// What goes to or comes from each rank, in bytes: the same for the ranks from `first` to before
/// `last`, nothing for the others.
struct alike {
  std::uint64_t start, stride, each;
  std::int32_t first, last;
  constexpr std::uint64_t at(int rank) const {
    return start + stride * static_cast<std::uint64_t>(rank);
  }
  constexpr std::uint64_t bytes(int rank) const { return first <= rank && rank < last ? each : 0; }
};

/// The same, for each rank its own.
struct listed {
  std::uint64_t start[most_ranks], size[most_ranks];
  constexpr std::uint64_t at(int rank) const { return start[rank]; }
  constexpr std::uint64_t bytes(int rank) const { return size[rank]; }
};

/// An operation, without what goes where. Small, because every work item has one.
struct job {
  const lanes* with;
  const std::uint32_t* abort;        ///< in the host's memory: not zero once all must end
  const std::byte* const* mapped;    ///< where peers' memory is: most_ranks entries for each key
  std::uint64_t send_key, recv_key;  ///< this rank's memory: see key_of(); 0: not mapped
  std::uint64_t epoch;
  std::uint64_t
      await;  ///< peers must have begun this operation before this one writes; 0: they have
  std::byte* pair_out;  ///< of two ranks, the lane to the other one and from it
  const std::byte* pair_in;
  std::uint64_t small, wide, stage;  ///< of the lanes: see lane_shape
  std::uint64_t bytes;               ///< of the message of a two_shot
  std::uint64_t slot;  ///< of staging memory: the most of a piece or slice, the same everywhere
  std::uint64_t fold_bytes;  ///< of the result; 0: this rank combines nothing
  std::uint64_t own_bytes;   ///< what this rank has for itself, in the send memory
  std::uint64_t peer_at;     ///< staged: where in peers' receive memory this rank's data goes
  std::int32_t rank, ranks;
  std::int32_t folded_ranks;  ///< the ranks from 0 on whose data is combined
  std::int32_t divisor;
  std::int32_t source, target;  ///< two_shot: the rank that has the data, gets it; -1: all
  way how;
  bool announces;      ///< peers do not learn from the data that this rank has begun
  bool may_be_direct;  ///< look whether all of the memory is mapped, and then use no staging
};

/// And with it: of this rank, where the result or its own part goes. Not used by two_shot.
template <class Amounts>
struct exchange_job : job {
  Amounts send, recv;
};

/// The key of memory `offset` bytes into the mapped memory of this number.
constexpr std::uint64_t key_of(std::uint64_t number, std::uint64_t offset) {
  return (number + 1) << 48 | offset;
}

}  // namespace sucl::kernels
