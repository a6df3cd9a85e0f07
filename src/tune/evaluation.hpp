// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Trials: recipes that are built and simulated, several at a time.
#pragma once

#include "plan/algorithms/algorithms.hpp"
#include "sim/model/machine.hpp"
#include "sim/simulate.hpp"

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

namespace sucl::tune {

/// A plan to build and simulate.
struct evaluation {
  plan::recipe how;
  double max_work = 0;            ///< of the simulator, at least 1
  double max_seconds = 0;         ///< that the plan may take; 0: any
  double keep_below_seconds = 0;  ///< a plan of fewer seconds comes back too
};

struct outcome {
  bool too_large = false;  ///< to be built
  bool seen = false;       ///< a plan of this hash was seen before, and not simulated again
  std::uint64_t instructions = 0;
  std::uint64_t hash = 0;
  std::uint64_t scratch_bytes = 0;  ///< most of a rank
  sim::prediction time;             ///< with the usage, for plans of one channel
  plan::schedule plan;              ///< as evaluation::keep_below_seconds says; else empty
};

/// Builds all of them and simulates those whose hash is not in `seen`, in at most so many threads
/// (0: one a processor). The outcomes are in the order of the evaluations and do not depend on the
/// number of threads.
std::vector<outcome> run_all(const plan::problem& p, const sim::machine& m,
                             const std::vector<evaluation>& evaluations,
                             const std::set<std::uint64_t>& seen, int threads);

}  // namespace sucl::tune
