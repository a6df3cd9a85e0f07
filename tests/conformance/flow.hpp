// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What a case moves on one rank: which elements it gives, which it gets and what they must be.
#pragma once

#include "case.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sucl::conformance {

/// A run of elements given: keys from `key` on, at `at` of the send memory (or of the only one).
struct given {
  std::size_t at;
  std::size_t count;
  std::uint64_t key;
};

/// A run of elements got: folded over ranks first to last, or moved if those are the same.
struct got {
  std::size_t at;
  std::size_t count;
  int first;
  int last;
  std::uint64_t key;
};

/// A message of a case with several.
struct message {
  int peer;
  std::size_t at;
  std::size_t count;
};

/// One rank's side of a case. Elements of the memories that are neither given nor got keep their
/// filling, except those from `scrap` on, which may hold anything.
struct flow {
  std::size_t send_size = 0;  ///< elements; 0: no send memory
  std::size_t recv_size = 0;
  std::vector<given> in;
  std::vector<got> out;
  std::size_t scrap = static_cast<std::size_t>(-1);
  std::vector<std::size_t> send_counts, send_displs, recv_counts, recv_displs;
  std::vector<message> sends, recvs;
};

/// What decides the sides of a call, whatever moves and however it is called.
struct call_spec {
  sucl::kind kind;
  std::size_t count = 0;
  int root = 0;
  bool in_place = false;
  bool all_pairs = false;       ///< a group has a message for each pair, not only for neighbours
  std::uint64_t irregular = 0;  ///< not 0: counts of each rank or pair are drawn from it
};

call_spec call_spec_of(const test_case& c, int ranks);
flow flow_of(const call_spec& s, int rank, int ranks);

/// How the elements of an operand lie in its storage.
struct layout {
  int dimensions = 0;  ///< 0: pointer
  std::size_t extent[3] = {1, 1, 1};
  std::size_t offset[3] = {0, 0, 0};
  std::size_t range[3] = {1, 1, 1};
  std::size_t storage() const { return extent[0] * extent[1] * extent[2]; }
  std::size_t array_index(std::size_t element) const;
  /// Elements from this one on that lie side by side.
  std::size_t row_rest(std::size_t element) const { return range[2] - element % range[2]; }
};

/// A layout for `elements` elements with unused ones around them.
layout layout_of(memory m, std::size_t elements);

/// The storages of both operands as bytes: before the call, and what they must be afterwards.
struct images {
  layout send_layout, recv_layout;
  std::vector<std::byte> send, recv, expected_recv;
};

images make_images(const test_case& c, const flow& f, int rank, int ranks);

/// Compares what is in the storages now with what must be; "" or what is wrong.
std::string compare(const test_case& c, const flow& f, const images& before,
                    const std::vector<std::byte>& send, const std::vector<std::byte>& recv);

}  // namespace sucl::conformance
