// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What is measured: one collective on one type and size.
#pragma once

#include <sucl/abi/backend.h>
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

/// A row of the table of collectives.
struct collective {
  kind of;
  bool with_counts;  ///< takes counts and displacements; here all blocks are of one size
  bool in_all;       ///< part of "bench all"
};

/// Every collective that can be measured. A ring of sendrecv is among them.
const std::vector<collective>& collectives();

/// The row of a kind, which must have one.
const collective& row_of(kind of);

/// Its arguments, as far as they say what is delivered.
sucl_operation operation_of(const problem& p);

/// Elements of this rank's send and receive memory. In a broadcast only the latter is used.
std::uint64_t send_elements(const problem& p);
std::uint64_t recv_elements(const problem& p);

/// Whether the input lies in the receive memory, as in a broadcast.
bool in_place(const problem& p);

}  // namespace sucl::bench
