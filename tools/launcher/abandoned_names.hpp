// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Shared memory of MPI libraries that has outlived its job.
#pragma once

#include <ctime>
#include <filesystem>

namespace sucl::tools {

/// MPICH, UCX below it and Intel MPI name their shared memory in /dev/shm until all ranks of the
/// machine have mapped it; a rank that dies within MPI_Init leaves the name and the memory behind.
/// Removes the names that this user's processes have made since `since`, and that none of them has
/// mapped or open; processes that their own user cannot look into are no ranks. `folder` is where
/// such names are.
void remove_abandoned_names(std::time_t since, const std::filesystem::path& folder = "/dev/shm");

}  // namespace sucl::tools
