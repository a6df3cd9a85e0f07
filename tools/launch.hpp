// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Starting a program as the ranks of a job.
#pragma once

#include "environment.hpp"

#include <string>
#include <utility>
#include <vector>

namespace sucl::tools {

/// What to start, and how.
struct job {
  const mpi_flavour* flavour = nullptr;
  int ranks = 1;
  bool survive = false;  ///< ranks live on when one of them dies
  std::vector<std::pair<std::string, std::string>> variables;  ///< for the ranks
  words program;                                               ///< with its arguments
};

/// The launcher's command line for a job whose variables are set in this process.
words launcher_command(const environment& env, const job& what);

/// Sets the variables, runs the launcher and ends this process with the job's exit code: that of
/// the rank that failed first, as a shell gives it, or else the launcher's. Each rank runs under
/// `sucl watch-rank`, which tells how it ended. Throws exit_error if the launcher is missing.
[[noreturn]] void launch(const environment& env, const job& what);

/// The same as commands for a shell.
std::string describe(const environment& env, const job& what);

}  // namespace sucl::tools
