// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The traces of a job's ranks in one: which rank waits for which, and the critical path.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sucl::tools {

/// An operation of a rank. Times are in microseconds.
struct traced_operation {
  int rank = 0;
  std::int64_t thread = 0;
  std::string name, type, op, backend, status;
  std::uint64_t communicator = 0, sequence = 0, bytes = 0;
  bool collective = true;
  double issued = 0, posted = 0, done = 0;
  double all_posted = 0;  ///< when the last rank has posted it: until then this one waits
  int last = 0;           ///< that rank
};

/// A piece of what the end of the job hangs on.
struct critical_piece {
  int rank = 0;
  double from = 0, to = 0;
  std::ptrdiff_t operation = -1;  ///< -1: the program of the rank, between operations
};

/// All ranks together.
struct job_timeline {
  std::vector<traced_operation> operations;  ///< by rank, then by when they end
  std::vector<critical_piece> path;          ///< from the beginning to the end
  double begin = 0, end = 0;
};

/// Throws exit_error with exit_code::failure if a file is no trace of SuCL, or two are of one rank.
job_timeline read_traces(const std::vector<std::string>& files);

/// What the page draws.
nlohmann::json page_data(const job_timeline& all);

/// "of 12.0 ms 60 % are the program of rank 1, 25 % allreduce": what the path consists of.
std::string describe_path(const job_timeline& all);

}  // namespace sucl::tools
