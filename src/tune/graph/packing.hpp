// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Spanning trees from all roots at once, which no link is too slow for.
#pragma once

#include "tune/graph/optimum.hpp"

#include <vector>

namespace sucl::tune {

/// From a rank that has the data to one that gets it.
struct hop {
  int from = 0;
  int to = 0;
};

/// A way for `weight` units of a root's data to all ranks that need them.
struct tree {
  int root = 0;
  std::int64_t weight = 1;
  std::vector<hop> hops;  ///< from the root outwards
};

/// What it takes to send a unit from one rank to another: the links that it leaves and comes by,
/// which carry one unit after another.
struct hop_cost {
  double latency = 0;
  double seconds = 0;
  std::uint32_t first = 0, last = 0;
};
struct hop_costs {
  int ranks = 0;
  std::size_t links = 0;
  std::vector<hop_cost> all;  ///< by pair
  bool in_turn = true;        ///< units that share a link go one after another; else as if alone
  bool unlimited = false;     ///< capacities do not count: trees are as shallow as they can be

  const hop_cost& at(int from, int to) const {
    return all[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) +
               static_cast<std::size_t>(to)];
  }
};

/// Packs as many trees from each rank as are wanted, each to all ranks; every link is in as many as
/// it has capacity for. Edges join a tree as long as a flow says that the others can still be made
/// (Lovász 1976; Bérczi and Frank 2010; ForestColl). The capacities are between ranks only, and
/// can_pack() the trees.
std::vector<tree> pack_trees(capacities c, const roots& wanted, const hop_costs& costs);

}  // namespace sucl::tune
