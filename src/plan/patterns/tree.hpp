// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The k-nomial tree (binomial for radix 2), as pairs of parent and child.
#pragma once

#include "plan/patterns/team.hpp"

#include <vector>

namespace sucl::plan {

struct tree_child {
  int position;
  int count;  ///< positions in its subtree: position, position + 1, ...
};

/// A node of the tree; positions count from the root. A subtree is a run of positions.
struct tree_node {
  int parent = -1;                   ///< -1: the root
  int count = 1;                     ///< positions in its subtree, itself included
  std::vector<tree_child> children;  ///< the nearest (and smallest) first
};

tree_node tree_node_of(int position, int members, int radix);

}  // namespace sucl::plan
