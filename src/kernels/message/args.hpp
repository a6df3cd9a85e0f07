// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The arguments of the kernel of messages. Plain data, the same for device and host.
#pragma once

#include "kernels/collective/args.hpp"

namespace sucl::kernels {

/// What must be the same at both ends of a message beside its length, in one word: the tag, and the
/// type and size of its elements.
struct message_label {
  static constexpr unsigned tag_bits = 15, type_bits = 5;
  std::uint32_t word;

  static constexpr message_label of(std::int32_t tag, std::int32_t type, std::uint64_t size) {
    return {static_cast<std::uint32_t>(tag) | static_cast<std::uint32_t>(type) << tag_bits |
            static_cast<std::uint32_t>(size) << (tag_bits + type_bits)};
  }
  SUCL_INLINE constexpr std::int32_t tag() const {
    return static_cast<std::int32_t>(word & ((1u << tag_bits) - 1));
  }
  SUCL_INLINE constexpr std::int32_t type() const {
    return static_cast<std::int32_t>(word >> tag_bits & ((1u << type_bits) - 1));
  }
  /// Its low bits.
  SUCL_INLINE constexpr std::uint32_t size() const { return word >> (tag_bits + type_bits); }

  /// Elements of type 0 are opaque, and as any others of their size.
  SUCL_INLINE constexpr bool fits(message_label o) const {
    if (word == o.word) return true;
    return tag() == o.tag() && size() == o.size() && (type() == 0 || o.type() == 0);
  }
};

/// A send or a receive.
struct message_part {
  std::byte* memory;  ///< a send only reads it
  std::uint64_t bytes;
  std::int32_t peer;
  message_label label;
  std::int32_t next;  ///< the part after this one, to or from the same peer; -1: none
  std::int32_t sends;
};

/// The parts of an operation that follow each other are a queue: one for each peer and direction.
inline constexpr int max_queues = 2 * max_ranks;

/// How a message has failed.
enum class message_fault : std::uint64_t {
  none,
  mismatch,  ///< what came from a peer is not what this rank waits for
  refused    ///< a peer says so of what this rank has sent
};

/// Of one peer. `fault` is written last.
struct message_failure {
  message_fault fault;
  message_label label, wanted_label;
  std::uint64_t bytes, wanted_bytes;
};

/// Flags in the host's memory between the kernels of a communicator and the host.
struct kernel_control {
  std::uint32_t abort;  ///< not zero once all kernels must end
  message_failure failures[max_ranks];
  std::uint64_t read[max_channels];  ///< by each work group: lists up to this number
};

/// Pieces that have gone through the channels, in memory of the device.
struct message_counts {
  std::uint64_t sent[max_ranks][max_channels];
  std::uint64_t taken[max_ranks][max_channels];
};

/// An operation: sends and receives that progress together. Its first part in each queue is part q
/// of queue q. Two parts, which is all that most operations have, come with it.
struct message_args {
  const peer_buffer_table* with;
  const std::uint32_t* abort;
  kernel_control* control;
  message_counts* counts;
  message_layout layout;
  message_part first, second;
  const message_part* list;  ///< all parts, in the host's memory; null: two at most
  std::uint64_t number;      ///< of the list
  std::int32_t queues;
};

}  // namespace sucl::kernels
