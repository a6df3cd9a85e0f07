// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What no plan of a collective is faster than on a machine, as it is simulated.
#pragma once

#include "plan/ir/problem.hpp"
#include "sim/model/machine.hpp"

#include <string>

namespace sucl::tune {

/// A lower bound, and what makes it.
struct bound {
  double seconds = 0;  ///< 0: none is known
  std::string why;     ///< as in "what enters rank 3: 31.0 GiB at 125 GB/s"
};

/// The largest of: what must pass the sides of cuts, at the rate of all that joins them, after the
/// latency of the quickest message across; and the latencies from the rank that is farthest away.
/// On a graph the cut is the tightest that there is (optimum.hpp), for collectives that spread or
/// reduce data; else, and on levels, cuts are single ranks, members of levels, and all members of a
/// level at once.
bound lower_bound(const plan::problem& p, const sim::machine& m);

}  // namespace sucl::tune
