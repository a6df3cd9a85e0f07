// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What is measured: one collective on one type and size, and what goes where in it.
#pragma once

#include <sucl/types.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sucl::bench {

/// One collective call, as one rank sees it.
struct problem {
  kind of = kind::barrier;
  type element = type::fp32;
  op reduction = op::none;
  int ranks = 1;
  int rank = 0;
  int root = 0;
  std::uint64_t count = 0;  ///< elements of a message, or of one rank's block of it

  std::size_t element_size() const { return size_of(element); }
  std::uint64_t bytes() const { return count * element_size(); }
};

/// How many elements a memory holds: none, `count`, or `count` for each rank.
enum class extent { none, one, all };

/// Where one element of a result comes from: element `index` of what the ranks `first` to `last`
/// send, reduced if they are several. No rank at all (first > last): the element is left alone.
struct contribution {
  int first = 0;
  int last = 0;
  std::uint64_t index = 0;
};

/// A row of the table of collectives.
struct collective {
  kind of;
  extent send;
  bool send_at_root_only;
  extent recv;
  bool recv_at_root_only;
  bool with_counts;  ///< takes counts and displacements; here all blocks are of one size
  bool in_all;       ///< part of "bench all"
  contribution (*source)(const problem& p, std::uint64_t index);  ///< null: no data
};

/// Every collective that can be measured. A ring of sendrecv is among them.
const std::vector<collective>& collectives();

/// The row of a kind, which must have one.
const collective& row_of(kind of);

/// Elements of this rank's send and receive memory. In a broadcast only the latter is used.
std::uint64_t send_elements(const problem& p);
std::uint64_t recv_elements(const problem& p);

/// Whether the input lies in the receive memory, as in a broadcast.
bool in_place(const problem& p);

}  // namespace sucl::bench
