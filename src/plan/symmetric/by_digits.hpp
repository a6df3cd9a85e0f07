// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Collectives in which every rank exchanges along each digit of its number: recursive exchange
/// with any radices (after Jocksch and others 2021), dimension by dimension as on a torus (Barnett
/// and others 1994), written for one rank.
#pragma once

#include "plan/symmetric/symmetric.hpp"

#include <string>
#include <vector>

namespace sucl::plan {

struct by_digits_options {
  std::vector<int> radices;      ///< of the outermost digit first
  std::vector<std::string> via;  ///< transport of each digit; empty: any
  /// Along how many digits, the innermost first, the ranks of an allreduce share the vector among
  /// them and gather it again; along the others they exchange all that they have. -1: along as many
  /// as the elements can be shared among.
  int split = -1;
  int pipeline = 1;  ///< channels, each with its part of the vector; of an allreduce
  int stagger = 0;   ///< 1: channels one after another, as in stagger()
  /// Gathers and scatters take the outermost digit first for allgather, the innermost first for
  /// reduce_scatter, so that what crosses between nodes crosses once. Blocks are then sent one by
  /// one along the innermost digit.
  bool outer_first = false;
};

/// The split of an allreduce, where -1 stands for it.
int split_of(const problem& p, const by_digits_options& o);

/// Why there is no such plan; empty if there is.
std::string refusal(const problem& p, const by_digits_options& o);

/// Allreduce, allgather, reduce_scatter_block and alltoall; not in place. Unproved. Throws
/// invalid_argument where there is a refusal.
symmetric_schedule build_by_digits(const problem& p, const by_digits_options& o);

}  // namespace sucl::plan
