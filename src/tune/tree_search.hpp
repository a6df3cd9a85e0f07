// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Search among plans along spanning trees of a graph.
#pragma once

#include "tune/search.hpp"

namespace sucl::tune {

/// search() for what takes_trees(). Timetables say which trees, and which numbers of trees and
/// segments, are worth a simulation.
search_result search_trees(const plan::problem& p, const sim::machine& m, const search_options& o);

}  // namespace sucl::tune
