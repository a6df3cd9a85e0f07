// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Simulations, and what limits a plan.
#pragma once

#include "sim/simulate.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace sucl::tools {

/// The prediction. Throws sucl::error where it takes more than options.max_work.
sim::prediction simulate_within(const plan::schedule& s, const sim::machine& m,
                                const sim::simulate_options& options);

/// What it is, as in "network port_out 3, port 1".
std::string use_name(const sim::usage& u, const sim::machine& m);

/// The `count` that are busy longest.
std::vector<sim::usage> busiest(const sim::prediction& p, std::size_t count);

}  // namespace sucl::tools
