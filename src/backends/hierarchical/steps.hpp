// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How a collective of several nodes becomes collectives of the ranks of one node and of ranks of
/// different nodes. Pure: nothing is communicated. A node here is whatever groups the ranks: a
/// node, or an island of one.
///
/// Rank number l of a node exchanges data with the ranks number l of the other nodes. Those that
/// do are leaders; with several, each has a slice of the message. Leaders are the multi-leader
/// scheme of the kernel-based reductions (docs/design/backends/hierarchical.md).
#pragma once

#include <sucl/abi/backend.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sucl::core {

/// Where the ranks of a communicator are. The same on every rank but for the first three.
struct hierarchical_map {
  int rank = 0;
  int node = 0;               ///< of this rank
  int local = 0;              ///< its number on its node
  std::vector<int> node_of;   ///< one entry a rank
  std::vector<int> local_of;  ///< one entry a rank
  std::vector<int> ranks_on;  ///< one entry a node
  std::vector<int> first_on;  ///< lowest rank of each node
  int max_leaders = 1;        ///< so many local numbers are on every node
  bool consecutive = true;    ///< the ranks of a node follow each other
  bool islands = false;       ///< of one node, at least two: there is level::whole too
  bool alone() const { return ranks_on[static_cast<std::size_t>(node)] == 1; }
};
hierarchical_map map_nodes(const std::vector<int>& node_of, int rank);

/// The communicators that a rank takes part in: the ranks of its node, by their local numbers;
/// those of its own local number on each node, by the numbers of the nodes; and, where nodes are
/// islands or run compiled plans, all ranks. There a rank that is alone has a communicator of
/// itself.
enum class level { node, across, whole };
inline constexpr std::size_t level_count = 3;

/// Memory that a step reads or writes: a part of the operation's memory or of scratch.
struct step_memory {
  enum class area { none, send, recv, scratch };
  area where = area::none;
  std::uint64_t at = 0;  ///< elements from its start
  bool operator==(const step_memory&) const = default;
};

/// Counts and displacements of a step: where each array starts in step_list::numbers.
struct step_arrays {
  static constexpr std::ptrdiff_t none = -1;
  std::ptrdiff_t counts = none, displs = none;
};

/// A send or a receive of a step that is a group of them.
struct step_message {
  bool sends = false;
  int peer = 0;        ///< of the whole
  step_memory memory;  ///< `at` is in bytes
  std::uint64_t bytes = 0;
};

/// One operation on one of the communicators: a collective, or, of a compiled plan, a wave of what
/// it does within the node or a group of messages between nodes.
struct hierarchical_step {
  level on = level::node;
  sucl_kind kind = SUCL_KIND_BARRIER;
  int root = 0;             ///< a rank of that communicator
  std::uint64_t count = 0;  ///< as in sucl_operation
  step_memory from, to;
  bool in_place = false;  ///< the input is in `to`
  step_arrays send, recv;
  int phase = 0;                      ///< the same for all ranks of the communicator
  int wave = 0;                       ///< steps of one wave need nothing of each other
  std::uint64_t plan = 0;             ///< the number of a plan, of which `root` is the wave
  std::size_t first = 0, behind = 0;  ///< of the messages of a group, in step_list::messages
};

/// What one rank does: the steps of one wave after those of the wave before. On each communicator
/// they come in this order on every rank.
struct step_list {
  std::vector<hierarchical_step> steps;
  std::vector<std::uint64_t> numbers;
  std::vector<step_message> messages;
  std::uint64_t scratch = 0;  ///< elements

  auto begin() const { return steps.begin(); }
  auto end() const { return steps.end(); }
  std::size_t size() const { return steps.size(); }
  const std::uint64_t* array(std::ptrdiff_t at) const {
    return at == step_arrays::none ? nullptr : numbers.data() + at;
  }
};

/// Whether operations of this kind are made of steps.
bool has_steps(sucl_kind kind, const hierarchical_map& where) noexcept;

/// How an operation is divided; the same on every rank.
struct step_division {
  int slices = 1;   ///< leaders that share the message
  int leaders = 1;  ///< local numbers with a communicator across nodes, up to max_leaders
  std::uint64_t piece =
      0;  ///< elements of a long message that go through the levels together; 0: all
};

/// The steps of an operation on this rank: an empty list if nothing is to be moved.
step_list steps_of(const sucl_operation& operation, const hierarchical_map& where,
                   const step_division& how);

}  // namespace sucl::core
