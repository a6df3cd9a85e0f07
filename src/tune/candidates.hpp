// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The recipes that search considers.
#pragma once

#include "plan/algorithms/algorithms.hpp"
#include "sim/model/machine.hpp"

#include <string>
#include <vector>

namespace sucl::tune {

/// Recipes that fit the problem and the machine: every algorithm with the parameters that the
/// machine suggests, in a fixed order, none twice.
std::vector<plan::recipe> candidates(const plan::problem& p, const sim::machine& m);

/// A set of parameters that others chose by hand, and who.
struct published {
  std::string source;  ///< as in "HiCCL tree"
  plan::recipe how;
};

/// The parameter sets of HiCCL's Table 5 (Hidayetoglu and others 2024), made for this machine the
/// way the table makes them for its four: the nodes as a binary tree or as a ring, the levels of
/// the node as they are, striped over the ranks of a node, with pipelines of 1, 4, 16 and 64
/// channels, as the table names no depth. What search is compared with; it does not consider them.
std::vector<published> hiccl_sets(const plan::problem& p, const sim::machine& m);

/// The parameter sets of the ext_mpi_collectives slides (Jocksch and others 2026), for allreduce:
/// recursive exchange with radices -2,2,2 and -4,-2,2,4 and cyclic shift between nodes, with the
/// node as a stage of its own. Search does not consider them either.
std::vector<published> ext_mpi_sets(const plan::problem& p, const sim::machine& m);

/// Changes of one parameter: what search tries on the best recipes.
std::vector<plan::recipe> neighbours(const plan::recipe& r, const plan::problem& p,
                                     const sim::machine& m);

}  // namespace sucl::tune
