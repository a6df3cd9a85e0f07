// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Compositions drawn at random, and what their primitives mean.
#pragma once

#include <sucl/composition.hpp>

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace sucl::testing {

using element = std::int32_t;

/// Blocks of the ranks' inputs that an element is the sum of: none twice. Empty: not known yet.
using sources = std::set<std::pair<int, std::size_t>>;

/// The three memories of every rank.
struct memories {
  static constexpr int spaces = 3;
  std::vector<std::vector<element>> of[spaces];
  std::vector<std::vector<sources>> known[spaces];

  memories(int ranks, std::size_t send, std::size_t recv, std::size_t scratch) {
    const std::size_t sizes[spaces] = {send, recv, scratch};
    for (int s = 0; s < spaces; ++s)
      for (int r = 0; r < ranks; ++r) {
        of[s].emplace_back(sizes[s], -1);
        known[s].emplace_back(sizes[s]);
      }
  }
  static int index(slice::memory m) { return static_cast<int>(m); }
  /// Of a block, which has one for all of its elements.
  const sources& known_at(int rank, const slice& s) const {
    return known[index(s.where)][static_cast<std::size_t>(rank)][s.offset];
  }
};

/// A composition, and what it means for the input of `input_of()`.
struct drawn {
  composition what;
  compile_options how;
  memories outcome;
  std::size_t send_size, recv_size;
};

/// One that has something to do.
drawn draw_plan(int ranks, unsigned seed);

}  // namespace sucl::testing
