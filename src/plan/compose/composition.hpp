// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Composition of collectives from multicasts, reductions and fences, and the passes that turn one
/// into a schedule for a machine (after HiCCL, Hidayetoglu and others 2024). A composition is plain
/// data; every pass is a function from composition to composition.
#pragma once

#include "plan/ir/builder.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sucl::plan {

/// A rank's end of a primitive.
struct endpoint {
  int rank = 0;
  address at;

  friend bool operator==(const endpoint&, const endpoint&) = default;
};

/// One multicast (root to leaves: everyone's bytes become the root's) or reduction (leaves to root:
/// the root's bytes become the reduction of the leaves'). The root may be one of the leaves.
struct primitive {
  enum class type : std::uint8_t { multicast, reduction };
  type what = type::multicast;
  std::uint8_t level = 0;  ///< level of the machine that it crosses
  int channel = 0;         ///< part of the pipeline
  endpoint root;
  std::vector<endpoint> leaves;
  std::uint64_t bytes = 0;

  friend bool operator==(const primitive&, const primitive&) = default;
};

/// Primitives that run at once.
using step = std::vector<primitive>;

/// A collective as steps, with a fence between each two. A fence orders accesses to the same data;
/// it is no barrier.
struct composition {
  problem what;
  std::vector<level> levels{{"all", "any"}};
  std::vector<step> steps{{}};
  std::vector<std::uint64_t> scratch;  ///< bytes of scratch in use, a rank
  /// Reductions fold their leaves in order of rank, whichever their root is: where several roots
  /// reduce the same elements, which compose() and derive_outcome() find out.
  bool in_order = false;

  /// A custom collective on spaces of these many elements. Finish it with derive_outcome().
  static composition custom(int ranks, std::uint64_t send_elements, std::uint64_t recv_elements,
                            std::uint64_t element_bytes);

  /// HiCCL's primitives, offsets and length in bytes; the same address on every leaf. Throw
  /// invalid_rank or invalid_count where they make no sense.
  void multicast(address src, address dst, std::uint64_t bytes, int root,
                 const std::vector<int>& leaves);
  void reduction(address src, address dst, std::uint64_t bytes, const std::vector<int>& leaves,
                 int root);
  /// Everything added later comes after everything added before, where it touches the same data.
  void fence();

  /// New scratch of a rank.
  address take_scratch(int rank, std::uint64_t bytes);

  friend bool operator==(const composition&, const composition&) = default;
};

/// All ranks of a composition, and all but one.
std::vector<int> all_ranks(const problem& p);
std::vector<int> all_but(const problem& p, int rank);

/// A standard collective: `steps` 1 gives the single-step form, 2 the multi-step one (allreduce:
/// reduce-scatter, then allgather), 3 for allreduce a reduce and a broadcast. Throws
/// invalid_argument where there is no such form.
composition compose(const problem& p, int steps);

/// Refuses two primitives of one step that touch the same bytes, one of them writing
/// (invalid_argument, which names both), and addresses outside their space.
void check_races(const composition& c);

/// Fills in what.outcome of a custom composition: what recv of each rank holds in the end.
composition derive_outcome(composition c);

/// Whether some elements are reduced by several roots, which then have to fold them alike.
bool reduces_repeatedly(const composition& c);

/// A part of a primitive.
primitive part_of(const primitive& p, std::uint64_t offset, std::uint64_t bytes);

/// Pipelining: cuts the data into `depth` parts, each in a channel of its own. Primitives are first
/// cut wherever another one that touches the same data begins or ends, so that everything that
/// depends on a byte is in that byte's channel.
composition pipeline(composition c, int depth);

/// Multi-NIC striping: a primitive that leaves its root's node (`group` consecutive ranks) is cut
/// into `parts`, which go through that many ranks of the node.
composition stripe(composition c, int group, int parts);

/// Ring: across nodes (`group` consecutive ranks) a primitive goes from node to node, entering each
/// at the rank whose index in its node is that of the root; within nodes it stays a primitive.
/// Reductions of a composition that is `in_order` stay as they are: for each root a ring begins at
/// another node.
composition ring(composition c, int group);

/// Hierarchy: a tree with one level a factor, outermost first. Leaves that are alone in their group
/// are reached directly, groups without leaves not at all. Groups may be uneven: the product of the
/// factors must be at least the number of ranks (else invalid_argument). `first` is the number of
/// the level that the first factor belongs to; levels that are missing are added.
composition factorise(composition c, const std::vector<int>& factors, int first = 0);

/// Writes the schedule: sends, receives and local reductions, step by step and channel by channel.
/// A root begins with its own part, unless the composition is `in_order`.
schedule lower(const composition& c, std::string algorithm);

/// One primitive a line, steps divided by "fence".
std::string to_text(const composition& c);
std::string to_text(const primitive& p);

}  // namespace sucl::plan
