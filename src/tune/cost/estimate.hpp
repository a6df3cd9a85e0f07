// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A rough estimate of a plan's time from its recipe alone, without building it: what search sorts
/// its candidates by. The simulator decides.
#pragma once

#include "plan/algorithms/algorithms.hpp"
#include "sim/model/machine.hpp"

namespace sucl::tune {

struct estimate {
  double seconds = 0;
  double instructions = 0;  ///< of all ranks: what building and simulating costs
  double latency = 0;       ///< part of the seconds that no pipeline shortens
  double overhead = 0;      ///< part of the seconds that each channel has again
};

/// Needs microseconds, whatever the number of ranks. Stages are taken one after another, each with
/// the latency, the work of the rank and the busiest link or port; channels overlap all but what
/// the busiest level needs (HiCCL's formulas (1) and (2), for any algorithm).
estimate rough_estimate(const plan::problem& p, const plan::recipe& r, const sim::machine& m);

}  // namespace sucl::tune
