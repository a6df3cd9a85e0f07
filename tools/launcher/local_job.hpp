// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The ranks of a job as children of this process, on this machine, without any MPI.
#pragma once

#include "launch.hpp"

namespace sucl::tools {

/// Starts them and waits for their ends; returns the exit code of the job. Signals to this process
/// go to all of them. Once one fails the others are ended, unless they shall live on. `input`:
/// the path of copy_input() that all ranks read; `no_copy`: rank 0 has the standard input.
int run_local(const job& what, const std::string& input);

}  // namespace sucl::tools
