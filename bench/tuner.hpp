// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Measuring who carries which messages fastest, for `sucl tune`.
#pragma once

#include "tune/table.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sucl::bench {

/// What `sucl tune` is asked to do.
struct tuning_request {
  std::vector<kind> collectives;
  std::vector<std::uint64_t> sizes;  ///< in bytes, rising
  bool symmetric = true;             ///< measure memory of the communicator's own too
  double seconds = 60;               ///< for everything
  /// Told on rank 0 what is measured now; `part` of the budget is spent.
  std::function<void(double part, const std::string& what)> progress;
};

/// Something that could carry a message.
struct tried {
  std::string backend;
  std::string recipe;       ///< of plans
  std::uint64_t slice = 0;  ///< of plans
  double predicted = 0;     ///< seconds, by the simulator; 0: not simulated
  double seconds = 0;       ///< the median of the slowest rank
  int samples = 0;
};

/// One collective, memory, form and size, and all that was tried, the fastest first.
struct tuned_point {
  kind what = kind::allreduce;
  tune::memory_kind memory = tune::memory_kind::ordinary;
  tune::call_form form = tune::call_form::blocking;
  std::uint64_t bytes = 0;
  std::vector<tried> all;
};

/// How a single threshold would do: MPI carries messages on one side of it, plans the others.
struct threshold_report {
  std::uint64_t bytes = 0;  ///< messages below are on one side
  bool mpi_below = true;
  double mean = 1;   ///< geometric mean of its times by those of the table
  double worst = 1;  ///< the same at the worst point
  std::string worst_at;
};

struct tuning_result {
  int rank = 0, ranks = 1, nodes = 1;
  double took = 0;  ///< seconds
  std::vector<tuned_point> points;
  tune::table table;           ///< of this number of ranks alone
  threshold_report fixed_64k;  ///< the better of both sides
  threshold_report best;       ///< of all thresholds
};

/// Starts the runtime, measures, and ends the runtime. Collective over the job, which is one of
/// `flavour`.
tuning_result run_tuning(const tuning_request& wanted, const std::string& flavour);

/// The rows of a table for what was measured.
std::vector<tune::table_row> rows_of(const std::vector<tuned_point>& points, int ranks, int nodes);

/// What a threshold would have cost on these points, those of ordinary memory and blocking calls.
threshold_report judge(const std::vector<tuned_point>& points, std::uint64_t threshold,
                       bool mpi_below);

}  // namespace sucl::bench
