// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Ways to divide ranks into a hierarchy on a machine.
#pragma once

#include "sim/model/machine.hpp"

#include <string>
#include <vector>

namespace sucl::tune {

/// Factors of the ranks, outermost first, each with its transport.
struct rank_hierarchy {
  std::vector<int> factors;
  std::vector<std::string> vias;

  friend bool operator==(const rank_hierarchy&, const rank_hierarchy&) = default;
};

/// The factors of `n` from large groups to small ones, each at most `radix` where n allows it.
std::vector<int> factors_up_to(int n, int radix);

/// The groups of the machine, outermost first.
rank_hierarchy machine_hierarchy(const sim::machine& m, int ranks);

/// The machine's groups with the outermost one divided into these factors.
rank_hierarchy with_outer(const rank_hierarchy& s, const std::vector<int>& outer);

/// The machine's groups with all but the outermost one joined.
rank_hierarchy with_one_inner(const rank_hierarchy& s);

/// The number of ranks in one of the outermost groups.
int node_ranks(const rank_hierarchy& s);

/// All hierarchies worth a try, the machine's first; none twice.
std::vector<rank_hierarchy> rank_hierarchies(const sim::machine& m, int ranks);

/// Whether all of so many ranks can read and write each other's memory.
bool share_memory(const sim::machine& m, int ranks);

}  // namespace sucl::tune
