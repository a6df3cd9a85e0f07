// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the ranks of a node share to run plans: flags that say how far each is, and scratch memory.
#pragma once

#include "backends/shm_common/placement.hpp"
#include "core/selection/call_board.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sucl::core {

/// Sizes of the shared memory. The same on every rank.
struct sharing {
  std::uint32_t slots = 4;  ///< runs that may have scratch at once, a power of two
  std::uint64_t slot_bytes = std::uint64_t{256} << 10;  ///< scratch of one run; a power of two
  bool long_ring = true;  ///< scratch moves through more memory than the slots need
};

/// The shared memory of one communicator: of each node, the ranks that are there.
///
/// Every run of a plan has a number, the same on all ranks, and uses the slot `number % slots`. A
/// slot has a flag for each channel, which the owner raises and peers wait for. The flag of channel
/// 0 is followed by bytes on the same and the next cache lines: the scratch of runs that need no
/// more, so that a small message and its flag arrive together.
///
/// Other runs have scratch in a ring, each behind the one before. It is much longer than they need:
/// what is written then lies in no processor's own cache any more but in the one that they share,
/// where it is taken over and read in half of the time.
class shared_memory {
 public:
  static constexpr std::uint64_t line = 64;
  static constexpr std::uint64_t inline_bytes = 504;  ///< scratch beside the flag

  /// Takes the region over from `via`, whose backend provides it. Collective.
  shared_memory(const backend_comm& via, const placement& where, const sharing& how);
  ~shared_memory();
  shared_memory(const shared_memory&) = delete;
  shared_memory& operator=(const shared_memory&) = delete;

  /// Whether the part of every rank of this node is within reach.
  bool complete() const { return m_complete; }
  std::uint32_t slots() const { return m_how.slots; }
  /// The slot of a run.
  std::uint32_t slot_of(std::uint64_t run) const {
    return static_cast<std::uint32_t>(run) & (m_how.slots - 1);
  }
  std::uint64_t slot_bytes() const { return m_how.slot_bytes; }

  using flag = std::atomic_ref<std::uint64_t>;
  /// The flag of a channel of a rank in a slot.
  flag at(std::uint32_t slot, std::int32_t rank, std::uint32_t channel) const {
    return flag(*flag_at(slot, rank, channel));
  }
  /// Where that flag lies.
  std::uint64_t* flag_at(std::uint32_t slot, std::int32_t rank, std::uint32_t channel) const {
    std::byte* flags = m_flags[slot * m_size + static_cast<std::uint32_t>(rank)];
    if (channel > 0) flags += first_bytes + (channel - 1) * line;
    return reinterpret_cast<std::uint64_t*>(flags);
  }
  /// The last run that a rank has finished, and all before it: a word of node_progress.
  flag finished(std::int32_t rank) const {
    return flag(*reinterpret_cast<std::uint64_t*>(m_parts[static_cast<std::size_t>(rank)]));
  }
  /// The number of the last run in which a rank could not read the memory of another one.
  flag last_unreadable(std::int32_t rank) const {
    return flag(*reinterpret_cast<std::uint64_t*>(m_parts[static_cast<std::size_t>(rank)] + line));
  }
  /// Where ranks of the node compare their calls.
  call_board& board() { return m_board; }
  const call_board& board() const { return m_board; }
  /// From a flag to that of the next slot, in flags.
  static constexpr std::uint64_t flags_per_slot() { return flags_bytes / sizeof(std::uint64_t); }

  /// What a run takes of scratch: bytes of a ring. Ring 0 is beside the flags.
  struct need {
    std::uint32_t ring = 0;
    std::uint64_t bytes = 0;
  };
  need need_of(std::uint64_t scratch_bytes) const {
    if (scratch_bytes <= inline_bytes) return {};
    const std::uint64_t bytes = (scratch_bytes + grain - 1) / grain * grain;
    const auto size = m_how.long_ring ? 0 : std::bit_width((bytes - 1) / grain);
    return {1 + static_cast<std::uint32_t>(size), bytes};
  }
  /// The parts of all ranks, by rank.
  std::byte* const* parts() const { return m_parts.data(); }
  /// Where in each part the next run has its scratch, which is to be run `number`.
  std::uint64_t scratch_at(const need& n, std::uint64_t number) const {
    if (n.ring == 0) return head_bytes + slot_of(number) * flags_bytes + sizeof(std::uint64_t);
    const ring& r = m_rings[n.ring - 1];
    if (!r.touched) touch(r);
    return r.begin + next_in(r, n);
  }
  /// Takes the scratch of a run that begins.
  void take(const need& n) {
    if (n.ring == 0) return;
    ring& r = m_rings[n.ring - 1];
    r.taken = next_in(r, n) + n.bytes;
  }

 private:
  // Runs take it from the begin to the end and again, alike on every rank. It has room for one more
  // of the longest runs than there are slots, and each round leaves less than one of these at the
  // end. So a run that gets bytes again comes at least as many runs later as there are slots.
  struct ring {
    std::uint64_t begin = 0, bytes = 0;
    std::uint64_t taken = 0;       // in this round
    mutable bool touched = false;  // its pages are there
  };
  // Runs begin at pages, at whose ends processors stop to fetch ahead: else a reader would take the
  // lines away that are written next.
  static constexpr std::uint64_t grain = 4096;
  static std::uint64_t next_in(const ring& r, const need& n) {
    return r.taken + n.bytes <= r.bytes ? r.taken : 0;
  }
  void touch(const ring& r) const noexcept;
  // The capacity of two processors' own caches of a MiB.
  static constexpr std::uint64_t long_ring_bytes = std::uint64_t{2} << 20;
  static constexpr std::uint64_t first_bytes = 512;   ///< flag of channel 0 and inline scratch
  static constexpr std::uint64_t flags_bytes = 2048;  ///< all flags of a slot
  static constexpr std::uint64_t head_bytes = 4096;
  static constexpr std::uint64_t board_at = 2 * line;
  static_assert(board_at + call_board::part_bytes <= head_bytes);

  backend_comm m_via;
  sharing m_how;
  std::uint32_t m_rank, m_size;
  bool m_complete = true;
  sucl_region m_region{};
  std::vector<std::byte*> m_parts;  // by rank
  std::vector<std::byte*> m_flags;  // by slot and rank
  call_board m_board;
  // One for all runs; or one for those of up to 4 KiB, 8 KiB and so on.
  std::vector<ring> m_rings;
};

}  // namespace sucl::core
