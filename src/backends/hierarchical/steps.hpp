// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How a collective of several nodes becomes collectives of the ranks of one node and of ranks of
/// different nodes. Pure: nothing is communicated.
///
/// Rank number l of a node exchanges data with the ranks number l of the other nodes. Those that
/// do are leaders; with several, each has a slice of the message. Leaders are the multi-leader
/// scheme of the kernel-based reductions (docs/design/hierarchical.md).
#pragma once

#include <sucl/abi/backend.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sucl::core {

/// Where the ranks of a communicator are. The same on every rank but for the first three.
struct hierarchical_map {
  int rank = 0;
  int node = 0;                 ///< of this rank
  int local = 0;                ///< its number on its node
  std::vector<int> node_of;     ///< one entry a rank
  std::vector<int> local_of;    ///< one entry a rank
  std::vector<int> ranks_on;    ///< one entry a node
  std::vector<int> first_on;    ///< lowest rank of each node
  int max_leaders = 1;          ///< so many local numbers are on every node
  bool consecutive = true;      ///< the ranks of a node follow each other
  const char* within = "node";  ///< what "node" here and below is: a node, or an island of one
  bool alone() const { return ranks_on[static_cast<std::size_t>(node)] == 1; }
};
hierarchical_map map_nodes(const std::vector<int>& node_of, int rank);

/// The communicators that a rank takes part in: the ranks of its node, by their local numbers, and
/// those of its own local number on each node, by the numbers of the nodes.
enum class level { node, across };

/// Memory that a step reads or writes: a place in that of the operation, or in scratch.
struct step_memory {
  enum class area { none, send, recv, scratch };
  area where = area::none;
  std::uint64_t at = 0;  ///< elements from its start
  bool operator==(const step_memory&) const = default;
};

/// One collective on one of the two communicators.
struct hierarchical_step {
  level on = level::node;
  sucl_kind kind = SUCL_KIND_BARRIER;
  int root = 0;             ///< a rank of that communicator
  std::uint64_t count = 0;  ///< as in sucl_operation
  step_memory from, to;
  bool in_place = false;  ///< the input is in `to`
  bool uneven = false;    ///< it has the counts and displacements of the list
};

/// What one rank does, one after the other.
struct step_list {
  std::array<hierarchical_step, 3> steps{};
  std::size_t size = 0;
  std::vector<std::uint64_t> counts, displs;  ///< of the one kind of step that is uneven
  std::uint64_t scratch = 0;                  ///< elements

  const hierarchical_step* begin() const { return steps.data(); }
  const hierarchical_step* end() const { return steps.data() + size; }
};

/// Whether operations of this kind are made of steps.
bool has_steps(sucl_kind kind, const hierarchical_map& where) noexcept;

/// The steps of an operation on this rank: an empty list if nothing is to be moved. `slices`:
/// leaders that share the message. `leaders`: local numbers that have a communicator across nodes,
/// at least `slices` and at most max_leaders.
step_list steps_of(const sucl_operation& operation, const hierarchical_map& where, int slices,
                   int leaders);

}  // namespace sucl::core
