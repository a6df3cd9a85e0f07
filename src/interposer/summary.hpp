// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The summary that `sucl run --interpose --summary` prints.
#pragma once

#include "interposer/decision/outcome.hpp"

namespace sucl::interposer {

/// Sums the counters of all ranks; the first rank prints them. Collective.
void print_summary(counters_by_kind mine, int rank);

}  // namespace sucl::interposer
