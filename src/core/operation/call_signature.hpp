// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the ranks of a communicator must agree on in one operation.
#pragma once

#include <sucl/abi/backend.h>
#include <sucl/error.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sucl::core {

/// An operation as the other ranks have to call it too. Plain data, which lies in shared memory.
struct call_signature {
  std::uint64_t hash = 0;   ///< of all that must be the same on every rank
  std::uint64_t count = 0;  ///< elements; in all blocks, where those have counts of their own
  std::uint64_t element_size = 0;
  std::int32_t kind = 0, type = 0, op = 0;
  std::int32_t root = -1;  ///< -1: the kind has none
  std::int32_t tag = 0;    ///< origin and number of encode_tag(), without the form
  std::int32_t reserved = 0;
};

/// One more number of what is hashed.
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t more) noexcept {
  const std::uint64_t product = (hash ^ more) * 0x9e3779b97f4a7c15u;
  return product ^ product >> 32;
}

/// The signature of a collective, or of a compiled plan, whose arrays are complete. What only some
/// ranks know is not part of it: the counts of alltoallv, gatherv and scatterv, and whether a rank
/// works in place.
call_signature signature_of(const sucl_operation& operation, int size) noexcept;

/// What this rank has given for others in an alltoallv, gatherv or scatterv: a sum over its pairs
/// that is 0 over all ranks if both sides of each pair give one number of bytes. 0 for other kinds.
std::uint64_t pair_balance(const sucl_operation& operation, int rank, int size) noexcept;

/// "broadcast of 3000 fp32 from rank 0".
std::string describe(const call_signature& call);

/// What a rank has called, and the history of that call: a hash of it and of all before it.
struct ranks_call {
  int rank = 0;
  std::uint64_t history = 0;
  call_signature call;
};
/// "rank 0 called barrier, ranks 1-3 called broadcast of 3000 fp32 from rank 0", of calls that have
/// one number. `history` is that of the rank that says so.
std::string describe_difference(const std::vector<ranks_call>& calls, std::uint64_t history);

/// The error of a communicator whose ranks have called what does not fit together.
error_info mismatch_error(std::string what);

}  // namespace sucl::core
