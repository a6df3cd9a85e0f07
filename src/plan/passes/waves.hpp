// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A plan of several nodes in waves, for devices: what a rank does within its node is one kernel
/// for each wave, and the messages between nodes that come after it are one group.
#pragma once

#include "plan/ir/schedule.hpp"

#include <cstdint>
#include <vector>

namespace sucl::plan {

/// A message between ranks of different nodes, as one of the two sees it.
struct network_message {
  std::uint32_t wave = 0;  ///< the same at both ends
  std::int32_t peer = -1;
  bool sends = false;
  space where = space::none;  ///< of this rank's memory
  std::uint64_t offset = 0, bytes = 0;

  friend bool operator==(const network_message&, const network_message&) = default;
};

/// For each channel of a rank the wave of each of its instructions.
using wave_numbers = std::vector<std::vector<std::uint32_t>>;

/// What a plan does in which wave. Every rank goes through the waves in order: first what it does
/// within its node, then its messages to and from other nodes, all of them at once.
struct wave_division {
  std::uint32_t waves = 0;
  std::vector<wave_numbers> of_rank;  ///< of a receive: the wave in which it is finished
  /// Of each rank, by waves. Within a wave messages from one rank to another have the same order
  /// at both ends.
  std::vector<std::vector<network_message>> messages;
};

/// Divides a verified plan that exchanges messages alone; `node_of` has a number for each rank.
/// Instructions are in the first wave in which they can be. A message within a node may be sent in
/// one wave and finished in a later one, never the other way round, so the kernel of a wave waits
/// for no later one. A message between nodes is in the later one of the waves in which its ends
/// start it: until their fences its memory is not used otherwise.
wave_division divide_in_waves(const schedule& s, const std::vector<int>& node_of);

/// One node's part of a plan: what its ranks do within the node.
struct node_part {
  schedule local;  ///< rank i is the member i
  std::vector<wave_numbers> waves;
  std::uint32_t wave_count = 0;
  std::vector<bool> occupied;  ///< by wave: whether some member has something to do
  /// Of each member, as in wave_division: what else uses its memory.
  std::vector<std::vector<network_message>> messages;
};

/// The part of the ranks `members`, which are all of one node, ascending.
node_part part_of_node(const schedule& s, const wave_division& division,
                       const std::vector<int>& members);

}  // namespace sucl::plan
