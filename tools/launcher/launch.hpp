// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Starting a program as the ranks of a job.
#pragma once

#include "environment.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace sucl::tools {

/// The launcher that starts the ranks.
enum class launcher {
  mpi,    ///< that of an MPI library
  local,  ///< `sucl run` itself, on this machine
  srun    ///< Slurm's, without MPI
};

/// By its name; for an empty one mpi, or local where SuCL was built without MPI. Throws exit_error.
launcher choose_launcher(const environment& env, const std::string& name);

/// What to start, and how.
struct job {
  launcher by = launcher::mpi;
  const mpi_flavour* flavour = nullptr;  ///< of MPI's launcher; null for others
  int ranks = 1;
  bool survive = false;   ///< ranks live on when one of them dies
  bool recovers = false;  ///< and the job is right if they end well
  /// If it does not recover, those that live on end so long after the first that failed: each has
  /// had its error by then, unless it does not request any.
  std::chrono::nanoseconds time_to_report{};
  /// Which ranks read standard input: `all`, `none` or `0`; empty: as the launcher does, rank 0, or
  /// with srun all.
  std::string input;
  std::vector<std::pair<std::string, std::string>> variables;  ///< for the ranks
  words program;                                               ///< with its arguments
};

/// The launcher's command line for a job whose variables are set in this process, and which has a
/// launcher of its own.
words launcher_command(const environment& env, const job& what);

/// Sets the variables, runs the launcher and ends this process with the job's exit code: that of
/// the rank that failed first, as a shell gives it, or else the launcher's. Each rank runs under
/// `sucl watch-rank`, which reports how it ended. Throws exit_error if the launcher is missing.
[[noreturn]] void launch(const environment& env, const job& what);

/// The same as commands for a shell.
std::string describe(const environment& env, const job& what);

}  // namespace sucl::tools
