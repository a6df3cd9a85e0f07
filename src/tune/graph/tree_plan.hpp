// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Plans along spanning trees of a machine that is a graph.
#pragma once

#include "plan/ir/schedule.hpp"
#include "tune/graph/optimum.hpp"
#include "tune/graph/timetable.hpp"

#include <memory>
#include <string>
#include <vector>

namespace sucl::tune {

/// How the trees of a plan are made.
struct tree_recipe {
  int trees = 1;         ///< from each root
  double slack = 1;      ///< times the least capacity for them: more makes shallower trees
  int segments = 1;      ///< that follow each other along a tree
  bool shallow = false;  ///< trees of few hops, as if each were alone; else of early arrivals
  bool pairs = false;    ///< each pair of ranks has a channel, instead of each link
  int ahead = 0;         ///< messages that a link of a rank takes in at once, in order; 0: any
  friend bool operator==(const tree_recipe&, const tree_recipe&) = default;
};

/// As in "trees(trees=2;slack=1.5;segments=8)".
std::string to_text(const tree_recipe& r);

/// Whether there are such plans: broadcast, reduce, allgather, reduce_scatter_block, allreduce, on
/// a graph, in any order of combining.
bool takes_trees(const plan::problem& p, const sim::machine& m);

/// Makes plans of one problem on one graph. Trees that were made once are kept.
class tree_planner {
 public:
  /// Throws invalid_argument where ranks cannot reach each other.
  tree_planner(const plan::problem& p, const sim::machine& m);
  ~tree_planner();

  /// When the last rank is done, by the timetable alone.
  double foretell(const tree_recipe& r);
  /// How many messages a plan has.
  double messages(const tree_recipe& r);
  /// How much of the optimal throughput that many trees can have, at most 1.
  double efficiency(int trees);

  plan::schedule make(const tree_recipe& r);

 private:
  struct state;
  std::unique_ptr<state> m_state;
};

}  // namespace sucl::tune
