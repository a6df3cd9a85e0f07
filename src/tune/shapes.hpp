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
struct shape {
  std::vector<int> factors;
  std::vector<std::string> vias;

  friend bool operator==(const shape&, const shape&) = default;
};

/// The factors of `n` from large groups to small ones, each at most `radix` where n allows it.
std::vector<int> factors_up_to(int n, int radix);

/// The groups of the machine, outermost first.
shape machine_shape(const sim::machine& m, int ranks);

/// The machine's groups with the outermost one divided into these factors.
shape with_outer(const shape& s, const std::vector<int>& outer);

/// The machine's groups with all but the outermost one joined.
shape with_one_inner(const shape& s);

/// The number of ranks in one of the outermost groups.
int node_ranks(const shape& s);

/// All shapes worth a try, the machine's first; none twice.
std::vector<shape> shapes(const sim::machine& m, int ranks);

/// Whether all of so many ranks can read and write each other's memory.
bool share_memory(const sim::machine& m, int ranks);

}  // namespace sucl::tune
