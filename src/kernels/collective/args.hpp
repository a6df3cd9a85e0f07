// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The arguments of a collective's kernel. Plain data, the same for device and host.
///
/// Ranks write to each other through peer buffers: memory that rank r writes and rank q reads, on
/// q's device if r reaches it. A peer buffer has flags, then lines of the LL and LL128 protocols,
/// then staging memory; of the last three there are two halves, and operations use them in turns.
/// An operation has a number, its epoch, the same on every rank. Flags only grow: epoch times
/// max_steps plus a step.
#pragma once

#include "kernels/layout.hpp"

#include <cstddef>
#include <cstdint>

/// Kernels are one function each: what is called costs every work item memory of its own for what
/// is passed by reference. Where threads of the host play the work items, SUCL_KERNELS_CALL leaves
/// that to the compiler, which has a fraction to do then.
#ifdef SUCL_KERNELS_CALL
#define SUCL_INLINE inline
#define SUCL_FLAT
#else
#define SUCL_INLINE [[gnu::always_inline]] inline
/// The same of a lambda.
#define SUCL_FLAT __attribute__((always_inline))
#endif

/// A loop of a few turns that is written out, so that arrays in it can stay in registers.
#ifdef __clang__
#define SUCL_UNROLL _Pragma("unroll")
#else
#define SUCL_UNROLL _Pragma("GCC unroll 64")
#endif

namespace sucl::kernels {

inline constexpr int max_ranks = 32;
inline constexpr int max_groups = 256;
/// Steps of a work group in an operation: enough for 256 GiB in the smallest pieces. What is left
/// of a flag counts operations for years.
inline constexpr std::uint64_t max_steps = 1 << 20;

/// Among up to so many ranks a kernel has the addresses of its peer buffers in its arguments.
/// Others load them from the device's memory, which takes longer than a short message.
inline constexpr int max_near_ranks = 8;
/// What a work item sends to or waits for at once, so that loads need not wait for each other.
inline constexpr int at_once = 4;

/// A list among the arguments of a kernel. An array that is indexed by what is known only when the
/// kernel runs would be copied into every work item's own memory; this is a tree of choices between
/// values, which stay where arguments are. Both are read before the choice, or compilers choose
/// between addresses instead. `N` is a power of two.
template <class T, int N>
struct value_list {
  value_list<T, N / 2> low, high;
  SUCL_INLINE constexpr T at(int i) const {
    const T a = low.at(i), b = high.at(i - N / 2);
    return i < N / 2 ? a : b;
  }
  constexpr T& operator[](int i) { return i < N / 2 ? low[i] : high[i - N / 2]; }
};
template <class T>
struct value_list<T, 1> {
  T value;
  SUCL_INLINE constexpr T at(int) const { return value; }
  constexpr T& operator[](int) { return value; }
};

/// Flags of a peer buffer, one a work group each.
enum class flag : std::uint64_t {
  ready,        ///< steps whose data is there
  freed,        ///< of the buffer in the other direction: steps that were read
  ready_later,  ///< the same for the second phase
  freed_later,
  entered,  ///< the writer is in this operation, and has published where its memory is:
  keys,     ///< in two more flags, for operations of even and of odd number
  keys_end = keys + 4,
  begun = keys_end,  ///< the last operation that the writer has begun; of the first group only
  count
};

inline constexpr std::uint64_t flags_bytes =
    static_cast<std::uint64_t>(flag::count) * max_groups * sizeof(std::uint64_t);

/// Sizes of a peer buffer, in bytes, the same on every rank.
struct buffer_layout {
  std::uint64_t ll = 0;     ///< most data that the LL lines of one half take; whole rows
  std::uint64_t ll128 = 0;  ///< LL128 lines, of one half; 0: there are none
  std::uint64_t stage = 0;  ///< staging memory, of one half
  message_layout messages;  ///< behind them
  constexpr std::uint64_t of_collectives() const {
    return flags_bytes + 2 * (2 * ll + ll128 + stage);
  }
  constexpr std::uint64_t bytes() const { return of_collectives() + messages.bytes(); }
};

/// How data is moved.
enum class protocol : std::int32_t {
  ll,      ///< by the LL protocol, pushed to every peer
  staged,  ///< pushed in pieces into staging memory
  /// The message is cut in a slice for each rank, or, where one rank has or gets all, for each of
  /// the others. Each is brought to its rank, which combines it, and brought from there to the
  /// others: in pieces, or, where all of the memory is mapped, directly.
  two_shot,
  ll_two_shot,     ///< the same by the LL protocol, each slice as a whole
  ll128,           ///< as ll, by the LL128 protocol
  ll128_two_shot,  ///< as ll_two_shot, by the LL128 protocol
};
/// What tuning tables call them.
inline constexpr const char* protocol_names[] = {"ll",          "staged", "two_shot",
                                                 "ll_two_shot", "ll128",  "ll128_two_shot"};

/// LL: quads whose first lines lie together, and then their second ones.
inline constexpr std::uint64_t ll_row = 512;

/// An LL128 line: what eight neighbouring work items store at once, 15 words of data and the number
/// of the operation. A device must keep such a store whole: over NVLink they do.
inline constexpr std::uint64_t ll128_line = 128, ll128_data = 120;
inline constexpr int ll128_parts = 8;
/// Memory for so much data in LL128 lines, in whole rows of 32 work items.
constexpr std::uint64_t ll128_bytes(std::uint64_t data) {
  constexpr std::uint64_t row = 4 * ll128_data;
  return (data + row - 1) / row * 4 * ll128_line;
}

/// The slice of each of the ranks that own one, in ll_two_shot.
constexpr std::uint64_t ll_slice(std::uint64_t bytes, int owners) {
  const auto n = static_cast<std::uint64_t>(owners);
  const std::uint64_t unit = bytes < n * ll_row ? 16 : ll_row;
  return ((bytes + n - 1) / n + unit - 1) / unit * unit;
}
/// The same in ll128_two_shot: whole rows.
constexpr std::uint64_t ll128_slice(std::uint64_t bytes, int owners) {
  constexpr std::uint64_t row = 4 * ll128_data;
  const auto n = static_cast<std::uint64_t>(owners);
  return ((bytes + n - 1) / n + row - 1) / row * row;
}
/// The size of a piece of many.
inline constexpr std::uint64_t one_of_many = 16 << 10;
/// How a message is cut for staging memory: pieces of so many bytes, for so many work groups.
struct staged_cut {
  std::uint64_t slot, groups;
};
/// In one piece for each group, if those are at most `most` bytes: half of the groups take a
/// processor each, and more pay when each has enough to do. Else in many: among four GPUs two or
/// three large ones took a quarter longer than small ones. Both ends of a pair work this out for
/// themselves.
constexpr staged_cut cut_for_staging(std::uint64_t bytes, std::uint64_t groups, std::uint64_t most,
                                     int ranks) {
  constexpr std::uint64_t enough = 64 << 10, unit = 128;
  const staged_cut many{ranks == 2 || most < one_of_many ? most : one_of_many, groups};
  if (bytes > most * groups) return many;
  const std::uint64_t half = (groups + 1) / 2, wanted = bytes / enough;
  const std::uint64_t used = wanted < half ? half : wanted > groups ? groups : wanted;
  // At least one byte each; all of it fits 32 bits, which a device divides sooner.
  const auto last = static_cast<std::uint32_t>(bytes > 0 ? bytes - 1 : 0);
  const std::uint64_t each = last / static_cast<std::uint32_t>(used) + 1;
  const std::uint64_t whole = (each + unit - 1) / unit * unit;
  return whole <= most ? staged_cut{whole, used} : many;
}

/// How many ranks own a slice. Where one rank has or gets all, that one owns none, so that its link
/// moves the message once; between two ranks both do, so that both links are used.
constexpr int slice_owners(int ranks, bool rooted) {
  return rooted && ranks > 2 ? ranks - 1 : ranks;
}

/// The peer buffers of a rank, in memory of its device: they are the same for all operations.
struct peer_buffer_table {
  std::byte* out[max_ranks];       ///< the buffer to each peer, as this rank reaches it
  const std::byte* in[max_ranks];  ///< the buffer from each peer
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

/// The same, for each rank its own. With few ranks the list is short, and found sooner.
template <int Most>
struct list_of {
  value_list<std::uint64_t, Most> start, size;
  constexpr std::uint64_t at(int rank) const { return start.at(rank); }
  constexpr std::uint64_t bytes(int rank) const { return size.at(rank); }
};
using listed = list_of<max_ranks>;
using listed_few = list_of<max_near_ranks>;

/// Where a replay of captured kernels stands among the operations of its communicator: in memory of
/// the device, written before the replay.
struct replay_base {
  std::uint64_t epoch;  ///< of the operation before the first one of the replay
  std::uint64_t await;  ///< of the first one
};
/// What captured kernels have in place of what replay_base::await says.
inline constexpr std::uint64_t await_of_base = ~std::uint64_t{0};

/// An operation, without what goes where. Small, because every work item has one.
struct collective_args {
  const peer_buffer_table* with;
  const std::uint32_t* abort;        ///< in the host's memory: not zero once all must end
  const std::byte* const* mapped;    ///< where peers' memory is: max_ranks entries for each key
  std::uint64_t send_key, recv_key;  ///< this rank's memory: see key_of(); 0: not mapped
  std::uint64_t epoch;
  std::uint64_t
      await;  ///< peers must have begun this operation before this one writes; 0: they have
  std::byte* pair_out;  ///< of two ranks, the buffer to the other one and from it
  const std::byte* pair_in;
  std::uint64_t ll, ll128, stage;  ///< of the peer buffers: see buffer_layout
  std::uint64_t bytes;             ///< of the message of a two_shot
  /// Of a captured kernel: `epoch` and `await` count from there. Null: they are what they are.
  const replay_base* base;
  std::uint64_t slot;  ///< of staging memory: the most of a piece or slice, the same everywhere
  std::uint64_t fold_bytes;  ///< of the result; 0: this rank combines nothing
  std::uint64_t own_bytes;   ///< what this rank has for itself, in the send memory
  std::uint64_t peer_at;     ///< staged: where in peers' receive memory this rank's data goes
  /// staged, where only the two ends of a pair know how much they exchange: up to so many bytes go
  /// by LL, and more up to so many by LL128. The rest goes in pieces, of at most `slot` bytes.
  std::uint64_t ll_pair_bytes, ll128_pair_bytes;
  std::int32_t rank, ranks;
  std::int32_t folded_ranks;  ///< the ranks from 0 on whose data is combined
  std::int32_t divisor;
  std::int32_t source, target;  ///< two_shot: the rank that has the data, gets it; -1: all
  protocol how;
  bool signals_start;  ///< the data does not show peers that this rank has begun
  bool may_be_direct;  ///< find out whether all of the memory is mapped, and then use no staging
  /// The buffers to and from the ranks after this one, from 1 on, where there are few. Behind what
  /// two ranks read: each line of arguments that a kernel reads it waits for.
  value_list<std::byte*, max_near_ranks> near_out;
  value_list<const std::byte*, max_near_ranks> near_in;
};

/// And with it: of this rank, where the result or its own part goes. Not used by two_shot.
template <class Amounts>
struct exchange_args : collective_args {
  Amounts send, recv;
};

/// The key of memory `offset` bytes into the mapped memory of this number.
constexpr std::uint64_t key_of(std::uint64_t number, std::uint64_t offset) {
  return (number + 1) << 48 | offset;
}

}  // namespace sucl::kernels
