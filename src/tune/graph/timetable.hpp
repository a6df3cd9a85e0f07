// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// In which order the links of a graph carry what trees send.
#pragma once

#include "sim/model/paths.hpp"
#include "tune/graph/trees.hpp"

#include <cstdint>
#include <vector>

namespace sucl::tune {

/// A part of a root's data, which goes along one tree.
struct parcel {
  std::uint32_t tree = 0;
  std::uint64_t offset = 0;  ///< in what the root has
  std::uint64_t bytes = 0;
  double ready = 0;  ///< when the root has it
};

/// One hop of a parcel.
struct transfer {
  std::uint32_t parcel = 0;
  std::uint32_t hop = 0;              ///< of its tree
  std::uint32_t first = 0, last = 0;  ///< links that it leaves and comes by
  double start = 0;
  double end = 0;  ///< when all of it is there
  double latency = 0;
};

/// Transfers by their start.
using timetable = std::vector<transfer>;

/// Links are given to the transfers that wait for them: to the one first that has the longest path
/// behind it. A message keeps all links of its path busy as long as the slowest of them takes.
/// `busy` has for each link until when it is taken, before and after; empty: all are free.
timetable schedule_trees(const sim::machine& m, sim::paths& paths, const std::vector<tree>& trees,
                         const std::vector<parcel>& parcels, std::vector<double>& busy);

}  // namespace sucl::tune
