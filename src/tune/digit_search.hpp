// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Search among plans that are the same for every rank, for ranks by the ten thousand: each is
/// built, simulated and proved for one of them.
#pragma once

#include "tune/search.hpp"

namespace sucl::tune {

/// Whether search() considers such plans: there are at least min_ranks_alike, they are alike on the
/// machine, and the collective is an allreduce, allgather, reduce_scatter_block or alltoall that is
/// not in place.
bool takes_digits(const plan::problem& p, const sim::machine& m);
inline constexpr int min_ranks_alike = 4096;

/// search() for what takes_digits().
search_result search_digits(const plan::problem& p, const sim::machine& m, const search_options& o);

}  // namespace sucl::tune
