// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Spanning trees of a graph from many roots at once.
#pragma once

#include "tune/graph/optimum.hpp"

#include <cstdint>
#include <vector>

namespace sucl::tune {

/// From a rank that has the data to one that gets it.
struct hop {
  int from = 0;
  int to = 0;
};

/// How a part of a root's data gets to all ranks.
struct tree {
  int root = 0;
  std::vector<hop> hops;  ///< from the root outwards
};

/// What a message takes from one rank to another: its links in order; none: there is no path.
struct route {
  std::vector<std::uint32_t> links;
  double latency = 0;
};

/// The one route of each pair of ranks, and how long each link takes for the data of a tree.
struct route_table {
  int ranks = 0;
  std::vector<route> all;       ///< by pair
  std::vector<double> seconds;  ///< by link

  std::size_t pair(int from, int to) const { return index(from) * index(ranks) + index(to); }
};

/// One tree from each root that has one, in which data arrives early. Trees grow at once, by the
/// edge that reaches its rank first: `in_turn`, messages that share a link go one after another;
/// else as if alone, and of edges that are alike that is taken whose links are used least.
std::vector<tree> early_trees(const route_table& routes, const roots& wanted, bool in_turn);

/// For each rank so many trees as are wanted, which take the busiest link for hardly longer than
/// `enough` seconds, if such are found. Trees are made one by one, with links the dearer the longer
/// they are taken, and are made again and again. The dearer `depth` is, the fewer hops follow each
/// other. (Links whose price grows exponentially with their load: Plotkin, Shmoys and Tardos 1995;
/// that such trees exist: Edmonds 1973, ForestColl.)
std::vector<tree> balanced_trees(const route_table& routes, const roots& wanted, double enough,
                                 double depth);

/// Paths from a rank to another for each of `ends`, `number` each, one number after the other, as
/// trees of one branch. They go through ranks where that takes load off the busiest link, found as
/// balanced_trees().
std::vector<tree> balanced_paths(const route_table& routes, const std::vector<hop>& ends,
                                 int number, double depth);

/// One path for each of `ends`, as if it were alone.
std::vector<tree> shortest_paths(const route_table& routes, const std::vector<hop>& ends);

/// For how long the busiest link is taken.
double busiest_link(const route_table& routes, const std::vector<tree>& trees);

}  // namespace sucl::tune
