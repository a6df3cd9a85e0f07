// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// One case of the conformance suite: a value for each factor; and the list of cases to run.
#pragma once

#include "support/inputs.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace sucl::conformance {

/// What varies from case to case. The values of a factor are indices of its names.
enum factor {
  f_kind,
  f_type,
  f_op,
  f_form,
  f_memory,
  f_in_place,
  f_comm,
  f_count,
  f_root,
  factors
};

/// How the call is made and awaited.
enum form {
  event_form,      ///< the returned event is waited for; results in buffers are just read
  blocking_form,   ///< comm.blocking()
  chained_form,    ///< filled and read by commands ordered by events, queue or accessors; no waits
  persistent_form  ///< comm.persistent(), started or run; only where it is asked for
};

/// Where the operands are.
enum memory {
  device_memory,
  host_memory,
  shared_memory,
  system_memory,
  buffer_1d,  ///< part of a buffer
  buffer_2d,  ///< block that is not contiguous
  buffer_3d,
  mixed_memory,     ///< another one of the above on each rank
  symmetric_memory  ///< of comm.allocate(); only where it is asked for
};

inline bool is_buffer(int m) { return m >= buffer_1d && m <= buffer_3d; }

/// Which communicator.
enum comm {
  world_comm,     ///< all ranks, out-of-order queue
  in_order_comm,  ///< in-order queue
  reversed_comm,  ///< ranks in reversed order
  host_comm       ///< without a queue
};

/// The root or partner.
enum root { first_root, last_root };

/// The names of a factor's values, in their order.
const std::vector<std::string>& names(factor f);

/// The name of a factor, as in "memory".
const char* factor_name(factor f);

/// The counts behind the values of f_count.
std::size_t count_of(int value);

struct test_case {
  std::array<int, factors> at{};
  bool messages_in_order = false;  ///< the backend takes them one after the other
  bool divides_first = false;      ///< averages of 16-bit floats: subnormal ones may be a step off

  sucl::kind kind() const { return static_cast<sucl::kind>(at[f_kind]); }
  sucl::op op() const { return static_cast<sucl::op>(at[f_op]); }
  reference::element element() const;
  bool in_place() const { return at[f_in_place] == 1; }
  bool message() const {
    return kind() == kind::send || kind() == kind::recv || kind() == kind::sendrecv ||
           kind() == kind::group;
  }
  std::size_t count() const { return count_of(at[f_count]); }
  int root(int ranks) const { return at[f_root] == last_root ? ranks - 1 : 0; }

  /// Where the operands of this rank are: never mixed_memory.
  memory memory_of(int rank) const;

  /// "kind=allreduce type=fp32 ...": the arguments that select this case alone.
  std::string text() const;
};

/// Allowed values of each factor: without a word about it, all but those that have to be asked for.
struct filter {
  std::array<std::vector<bool>, factors> allowed;

  filter();
  /// Takes "factor=value,value". Returns what is wrong with it, or "".
  std::string restrict(const std::string& argument);
};

/// Whether the API has such a call.
bool valid(const test_case& c);

/// Cases in which every pair of values of two factors occurs that the API and the filter allow, and
/// every type with every op for each second kind that reduces: runs with an odd number of ranks
/// take the one half of these kinds, runs with an even number the other. The same on every rank.
std::vector<test_case> cover(const filter& f, std::uint64_t seed, int ranks);

}  // namespace sucl::conformance
