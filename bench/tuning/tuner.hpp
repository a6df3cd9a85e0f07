// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Measuring which backend is the fastest for which messages, for `sucl tune`.
#pragma once

#include "tune/table/table.hpp"

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

/// Something that could execute a message.
struct tried {
  std::string backend;
  std::string recipe;       ///< of plans; empty: of another backend
  std::uint64_t slice = 0;  ///< of plans
  double predicted = 0;     ///< seconds, by the simulator; 0: not simulated
  double seconds = 0;       ///< the median of the slowest rank
  int samples = 0;
  std::string protocol = {};  ///< of kernels
};

/// One collective, memory, form and size, and all that was tried, the fastest first.
struct tuned_point {
  kind what = kind::allreduce;
  tune::memory_kind memory = tune::memory_kind::system;
  tune::call_form form = tune::call_form::blocking;
  std::uint64_t bytes = 0;
  std::vector<tried> all;
};

/// Two that a single threshold could choose between: one backend, and the best of the others.
struct alternatives {
  tune::memory_kind memory = tune::memory_kind::system;
  std::string one = "mpi", others = "plan";
};

/// How a single threshold would do.
struct threshold_report {
  std::uint64_t bytes = 0;  ///< messages below are on one side
  bool one_below = true;    ///< that of the one
  double mean = 1;          ///< geometric mean of its times by those of the table
  double worst = 1;         ///< the same at the worst point
  std::string worst_at;
};

struct tuning_result {
  int rank = 0, ranks = 1, nodes = 1;
  double took = 0;  ///< seconds
  std::vector<tuned_point> points;
  tune::table table;           ///< of this number of ranks alone
  alternatives between;        ///< whom a threshold would choose between
  threshold_report fixed_64k;  ///< the better of both sides
  threshold_report best;       ///< of all thresholds
};

/// Starts the runtime, measures, and ends the runtime. Collective over the job, which is one of
/// `flavour`.
tuning_result run_tuning(const tuning_request& wanted, const std::string& flavour);

/// The same for memory of GPUs, one a rank. Throws errc::unavailable where there are none.
tuning_result run_device_tuning(const tuning_request& wanted, const std::string& flavour);

/// Writes down what was measured: the table, and what thresholds would have made of it.
void conclude(tuning_result& result, const tuning_request& wanted, const std::string& flavour);

/// The rows of a table for what was measured.
std::vector<tune::table_row> rows_of(const std::vector<tuned_point>& points, int ranks, int nodes);

/// What a threshold would have cost on these points, those of the alternatives' memory and not by
/// event alone.
threshold_report evaluate_threshold(const std::vector<tuned_point>& points,
                                    const alternatives& between, std::uint64_t threshold,
                                    bool one_below);

}  // namespace sucl::bench
