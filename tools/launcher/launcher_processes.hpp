// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What a launcher has started on this machine.
#pragma once

#include <sys/types.h>

#include <vector>

namespace sucl::tools {

/// The launcher and its descendants that have not ended.
std::vector<pid_t> processes_of(pid_t launcher);

/// Whether all of them run programs from the folder of the launcher: then no rank is left on this
/// machine, and nothing that connects to another machine.
bool is_left_alone(const std::vector<pid_t>& processes);

}  // namespace sucl::tools
