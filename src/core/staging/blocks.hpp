// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which elements of its memory an operation reads and writes, and how slices cut them.
#pragma once

#include "core/staging/staged_operation.hpp"

#include <algorithm>
#include <limits>

namespace sucl::core {

/// What this rank does in an operation.
struct roles {
  bool source;     ///< contributes elements
  bool sink;       ///< gets elements
  bool from_recv;  ///< contributes them from recv: in place
};
roles roles_of(const sucl_operation& operation, int rank) noexcept;

/// Whether the memory a rank reads, or the memory it writes, has a block for every rank.
bool has_source_blocks(sucl_kind kind) noexcept;
bool has_sink_blocks(sucl_kind kind) noexcept;

/// Whether counts are known only to the pairs that exchange them (or to the root), so that the
/// ranks cannot agree on slices.
bool has_private_counts(sucl_kind kind) noexcept;

/// The largest count of an operation, of those that every rank knows: what slices cut.
std::uint64_t longest_block(const sucl_operation& operation, int size) noexcept;

/// How many slices of at most `slice` elements cut a block; at least one.
constexpr std::uint64_t slices_of(std::uint64_t elements, std::uint64_t slice) noexcept {
  return elements <= slice ? 1 : elements / slice + (elements % slice != 0);
}

/// One end of an operation: blocks of elements in the caller's memory. On the wire the blocks
/// follow one another without gaps, each clipped to the slice.
struct side {
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  bool present = false;
  bool through = false;  ///< goes through scratch memory
  bool device = false;   ///< and the copier copies it
  unsigned char* user = nullptr;
  sucl_memory memory = SUCL_MEMORY_SYSTEM;
  const base::strided* layout = nullptr;  ///< null: dense from `user` on
  std::uint64_t element_size = 0;
  std::uint64_t origin = 0;  ///< where the first block starts
  std::uint64_t count = 0;   ///< of each block, unless `counts`
  std::uint64_t blocks = 1;
  const std::uint64_t* counts = nullptr;
  const std::uint64_t* displs = nullptr;  ///< null: blocks follow one another
  std::uint64_t only = none;              ///< the one block that is read or written, if not all
  std::uint64_t skip = none;              ///< a block that is not

  std::uint64_t block_count(std::uint64_t i) const noexcept { return counts ? counts[i] : count; }

  /// Elements of the slice [a, b) on the wire.
  std::uint64_t wire_count(std::uint64_t a, std::uint64_t b) const noexcept {
    if (!counts) return blocks * clipped(count, a, b);
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < blocks; ++i) sum += clipped(counts[i], a, b);
    return sum;
  }

  /// How much of a block the slice [a, b) has.
  static std::uint64_t clipped(std::uint64_t block, std::uint64_t a, std::uint64_t b) noexcept {
    return std::min(b, block) - std::min(a, block);
  }

  /// Calls visit(memory, wire_element, elements) for each piece of the slice [a, b) that lies
  /// together in the caller's memory.
  template <class Visit>
  void for_each_piece(std::uint64_t a, std::uint64_t b, Visit&& visit) const {
    std::uint64_t start = 0;
    std::uint64_t wire = 0;
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const std::uint64_t block = block_count(i);
      const std::uint64_t n = clipped(block, a, b);
      if (n > 0 && i != skip && (only == none || only == i)) {
        const std::uint64_t first = origin + (displs ? displs[i] : start) + std::min(a, block);
        if (layout)
          layout->for_each_run(first, n,
                               [&](std::uint64_t at, std::uint64_t index, std::uint64_t length) {
                                 visit(user + at * element_size, wire + (index - first), length);
                               });
        else
          visit(user + first * element_size, wire, n);
      }
      start += block;
      wire += n;
    }
  }
};

/// An operation that is sliced, or a message of a group.
struct task {
  sucl_operation operation;
  const staging_plan* how = nullptr;
  side source;
  side sink;
  bool in_place = false;    ///< on the wire: the source's elements lie where the sink's will
  bool keeps_sink = false;  ///< elements of the sink may stay as they are: they are loaded too
  std::uint64_t slices = 1;
};

/// The task of an operation that is executed as itself.
task make_task(const sucl_operation& operation, const staging_plan& how);

/// The messages that an operation consists of: those of a group, the two halves of a sendrecv, or
/// one for each pair of a collective. Where they replace what they send, each message to a peer
/// comes before the one from it.
std::vector<task> make_messages(const sucl_operation& operation, const staging_plan& how);

}  // namespace sucl::core
