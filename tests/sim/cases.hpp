// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The problems and recipes that tests sweep over.
#pragma once

#include "plan/algorithms/algorithms.hpp"

#include <string>
#include <vector>

namespace sucl::plan::cases {

/// All kinds of collective that have plans.
std::vector<sucl::kind> kinds();

/// A problem of this kind with about `count` elements a block. The v-forms get uneven counts, some
/// of them zero.
problem make_problem(sucl::kind k, int ranks, std::uint64_t count, std::uint64_t element,
                     int root = 0);

/// Recipes of an algorithm with different parameters, for some number of ranks. All can be built.
std::vector<recipe> recipes(const algorithm_info& a, const problem& p);

/// The problem and recipe in words.
std::string describe(const problem& p, const recipe& r);

}  // namespace sucl::plan::cases
