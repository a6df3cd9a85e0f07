// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the ranks of a node share to run plans: words that say how far each is, and scratch memory.
#pragma once

#include "runtime/exec/placement.hpp"

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
  bool long_rings = true;                               ///< scratch has more places than slots
};

/// The shared memory of one communicator: of each node, the ranks that are there.
///
/// Every run of a plan has a number, the same on all ranks, and uses the slot `number % slots`. A
/// slot has a word for each channel, which the owner raises and peers wait for. The word of channel
/// 0 is followed by bytes on the same and the next cache lines: the scratch of runs that need no
/// more, so that a small message and its flag arrive together.
///
/// Other runs have scratch in a ring for runs of their size, whose places they have in turns. A
/// ring has many more of them than there are slots: what is written then lies in no processor's own
/// cache any more but in the one that they share, where it is taken over and read in half of the
/// time.
class shared_memory {
 public:
  static constexpr std::uint64_t line = 64;
  static constexpr std::uint64_t inline_bytes = 504;  ///< scratch beside the word

  /// Takes the region over from `via`, whose backend lends it. Collective.
  shared_memory(const channel& via, const placement& where, const sharing& how);
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

  using word = std::atomic_ref<std::uint64_t>;
  /// The word of a channel of a rank in a slot.
  word at(std::uint32_t slot, std::int32_t rank, std::uint32_t channel) const {
    return word(*place(slot, rank, channel));
  }
  /// Where it lies.
  std::uint64_t* place(std::uint32_t slot, std::int32_t rank, std::uint32_t channel) const {
    std::byte* words = m_words[slot * m_size + static_cast<std::uint32_t>(rank)];
    if (channel > 0) words += first_bytes + (channel - 1) * line;
    return reinterpret_cast<std::uint64_t*>(words);
  }
  /// The number of the last run that a rank has finished, and all before it.
  word finished(std::int32_t rank) const {
    return word(*reinterpret_cast<std::uint64_t*>(m_parts[static_cast<std::size_t>(rank)]));
  }
  /// The number of the last run in which a rank could not read the memory of another one.
  word trouble(std::int32_t rank) const {
    return word(*reinterpret_cast<std::uint64_t*>(m_parts[static_cast<std::size_t>(rank)] + line));
  }
  /// From a word to that of the next slot, in words.
  static constexpr std::uint64_t words_of_slot() { return words_bytes / sizeof(std::uint64_t); }

  /// Most rings that there may be.
  static constexpr std::size_t most_rings = 32;
  /// The ring of runs with so much scratch. Ring 0 is beside the words: its places are the slots.
  static std::uint32_t ring_of(std::uint64_t scratch_bytes) {
    if (scratch_bytes <= inline_bytes) return 0;
    return 1 + static_cast<std::uint32_t>(std::bit_width((scratch_bytes - 1) / least_stride));
  }
  /// Its places, a power of two and no fewer than the slots.
  std::uint32_t places(std::uint32_t ring) const { return m_rings[ring].places; }
  /// The scratch of all ranks at a place, by rank.
  std::byte* const* scratch(std::uint32_t ring, std::uint32_t place) const {
    const auto& r = m_rings[ring];
    if (!r.touched) touch(r);
    return r.memory.data() + place * m_size;
  }

  /// The places of runs that have `stride` bytes of scratch each.
  static constexpr std::uint32_t places_of(std::uint64_t stride, const sharing& how) {
    // As much as two processors' own caches of a MiB hold; less than 8 KiB stay in the first-level
    // cache in any case.
    constexpr std::uint64_t ring_bytes = 2 << 20, least = 8 << 10, most = 256 << 10;
    constexpr std::uint64_t most_places = 128;
    if (!how.long_rings || stride < least || stride > most) return how.slots;
    const std::uint64_t fitting = ring_bytes / stride;
    return static_cast<std::uint32_t>(fitting < most_places ? fitting : most_places);
  }

 private:
  struct ring {
    std::uint64_t stride = 0;
    std::uint32_t places = 0;
    mutable bool touched = false;    // its pages are there
    std::vector<std::byte*> memory;  // by place and rank
  };
  static constexpr std::uint64_t least_stride = 4096;
  static void touch(const ring& r) noexcept;
  static constexpr std::uint64_t first_bytes = 512;   ///< word of channel 0 and inline scratch
  static constexpr std::uint64_t words_bytes = 2048;  ///< all words of a slot
  static constexpr std::uint64_t head_bytes = 4096;

  channel m_via;
  sharing m_how;
  std::uint32_t m_size;
  bool m_complete = true;
  sucl_region m_region{};
  std::vector<std::byte*> m_parts;  // by rank
  std::vector<std::byte*> m_words;  // by slot and rank
  std::vector<ring> m_rings;        // beside the words; of 4 KiB, 8 KiB and so on to slot_bytes
};

}  // namespace sucl::core
