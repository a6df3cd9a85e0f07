// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A whole benchmark run, on the ranks of a job.
#pragma once

#include "bench/results/report.hpp"
#include "options.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace sucl::bench {

/// What a run has found out.
struct session_result {
  int rank = 0;
  nlohmann::ordered_json header;  ///< on rank 0
  std::vector<row> rows;          ///< the same on every rank
};

/// Starts the runtime, measures what `wanted` says, and ends the runtime. Collective over the job.
/// `flavour` is the MPI of the job, "" without one. Rank 0 reports progress on standard error.
session_result run_session(const options& wanted, const std::string& flavour);

}  // namespace sucl::bench
