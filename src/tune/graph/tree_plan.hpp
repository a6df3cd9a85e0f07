// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Plans along spanning trees of a machine that is a graph.
#pragma once

#include "plan/ir/schedule.hpp"
#include "tune/graph/optimum.hpp"
#include "tune/graph/timetable.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sucl::tune {

/// How the trees of a plan are made, and in which order links carry what they send.
struct tree_recipe {
  enum class tree_type : std::uint8_t {
    balanced,  ///< all links are taken for about as long
    early,     ///< data arrives early, where messages share links one after another
    shallow    ///< data arrives early, as if each message were alone
  };
  enum class order : std::uint8_t {
    strict,  ///< links send, and ranks take in by each link, in the order of the timetable
    links,   ///< links send in that order, ranks take in what comes
    pairs    ///< each hop has a channel, links are shared
  };

  tree_type trees = tree_type::balanced;
  int number = 1;      ///< from each root; of those that arrive early: 1
  double depth = 0.5;  ///< how dear hops behind each other are in balanced trees
  int segments = 1;    ///< that follow each other along a tree
  order by = order::strict;
  friend bool operator==(const tree_recipe&, const tree_recipe&) = default;
};

/// As in "trees(number=2;depth=0.5;segments=8)".
std::string to_text(const tree_recipe& r);

/// Whether there are such plans: broadcast, reduce, allgather, reduce_scatter_block, allreduce,
/// alltoall, gather and scatter, on a graph, in any order of combining. The last three have a path
/// for each block instead of a tree for each root.
bool takes_trees(const plan::problem& p, const sim::machine& m);

/// Makes plans of one problem on one graph. Trees that were made once are kept.
class tree_planner {
 public:
  /// Throws invalid_argument where ranks cannot reach each other.
  tree_planner(const plan::problem& p, const sim::machine& m);
  ~tree_planner();

  /// When the last rank is done, by the timetable alone.
  double predicted_seconds(const tree_recipe& r);
  /// How many messages a plan has.
  double messages(const tree_recipe& r);
  /// Whether messages through switches take longer than their latency. Only then a plan takes as
  /// long as is predicted.
  bool long_messages(const tree_recipe& r);
  /// For how long the busiest link is taken.
  double busiest(const tree_recipe& r);
  /// Whether there is a path for each block instead of a tree for each root.
  bool has_paths() const;
  /// How many roots or blocks there are.
  double tree_count() const;
  /// How much of the optimal throughput that many equal trees can have, at most 1.
  double efficiency(int trees);

  plan::schedule make(const tree_recipe& r);

 private:
  struct state;
  std::unique_ptr<state> m_state;
};

}  // namespace sucl::tune
