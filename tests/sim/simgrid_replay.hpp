// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The same schedule on the same machine, timed by SimGrid.
#pragma once

#include "plan/ir/schedule.hpp"
#include "sim/model/machine.hpp"

namespace sucl::sim {

/// Seconds that the schedule takes. SimGrid runs once in a process.
///
/// SimGrid knows no weights, so memory and kernels cannot both be limited; and it gives flows of
/// more latency less, so that flows which share memory or a kernel must have equal latencies.
double replay_in_simgrid(const plan::schedule& s, const machine& m);

}  // namespace sucl::sim
