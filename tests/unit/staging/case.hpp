// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// One collective on every rank of the fake backend: made, run through the staging, checked.
#pragma once

#include "fake.hpp"

#include <cstdint>
#include <ostream>
#include <string>

namespace sucl::test {

enum class where { host, device, mixed };

struct collective_case {
  sucl_kind kind = SUCL_KIND_ALLREDUCE;
  sucl_type type = SUCL_TYPE_FP32;
  sucl_op op = SUCL_OP_SUM;
  int p = 1;
  std::uint64_t count = 1;
  std::uint64_t slice = 0;  ///< elements; 0: whole
  bool by_limit = false;    ///< sliced because of max_count, not of staging
  bool in_place = false;
  where memory = where::host;
  bool strided = false;  ///< on every other rank
  bool native = false;   ///< the backend executes every type and op itself
  bool ordered = false;  ///< but only moves what must be folded in order of rank
  unsigned seed = 1;
};

std::ostream& operator<<(std::ostream& out, const collective_case& c);

/// Runs it. Empty if every byte of every rank's memory is as it should be, else what is not.
std::string run(const collective_case& c);

/// An element with a value that sums and products of a few ranks keep exact.
bytes make_element(sucl_type type, sucl_op op, std::mt19937& random);

/// What most MPI libraries support: no 16-bit floats, no averages.
bool supports_like_mpi(sucl_kind kind, sucl_type type, sucl_op op);

/// Memory of `elements` elements, dense or a block of a larger array, on the host or scrambled.
struct user_array {
  user_array(std::uint64_t elements, std::uint64_t element_size, bool strided, bool device,
             std::mt19937& random);
  unsigned char* data() { return memory.storage.data(); }
  /// Writes one element, and expects it to stay.
  void put(std::uint64_t index, const unsigned char* element);
  void expect(std::uint64_t index, const unsigned char* element);
  bytes get(std::uint64_t index) const;
  /// Whether each byte, inside the block and around it, is as expected.
  bool as_expected() const;

  std::uint64_t size;
  std::optional<base::strided> layout;
  std::vector<std::uint64_t> indices;
  fake_memory memory;
  bytes expected;  ///< unscrambled
};

}  // namespace sucl::test
