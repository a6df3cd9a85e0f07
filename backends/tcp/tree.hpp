// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The tree along which the members of a group exchange: of few levels, and no member with many
/// neighbours. What is below a member is a range of indices, so that blocks come in order.
#pragma once

#include <algorithm>
#include <vector>

namespace sucl::tcp {

/// The most children of a member.
inline constexpr int tree_width = 8;

/// A member's position.
struct tree_position {
  int parent = -1;            ///< index; -1: the root
  std::vector<int> children;  ///< ascending
  int end = 0;                ///< below and including it: [index, end)

  int child_end(std::size_t i) const { return i + 1 < children.size() ? children[i + 1] : end; }
};

/// The first index of each part of [low, high), in which as many are as in any other, give or take
/// one.
inline std::vector<int> parts_of(int low, int high) {
  std::vector<int> firsts;
  const int n = high - low, parts = std::min(n, tree_width);
  for (int i = 0, at = low; i < parts; ++i) {
    firsts.push_back(at);
    at += n / parts + (i < n % parts ? 1 : 0);
  }
  return firsts;
}

inline tree_position position_in_tree(int index, int size) {
  tree_position p;
  int low = 0, high = size;
  while (low != index) {
    const auto firsts = parts_of(low + 1, high);
    const auto after = std::upper_bound(firsts.begin(), firsts.end(), index);
    p.parent = low;
    low = *(after - 1);
    high = after == firsts.end() ? high : *after;
  }
  p.children = parts_of(low + 1, high);
  p.end = high;
  return p;
}

}  // namespace sucl::tcp
