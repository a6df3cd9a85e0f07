// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which ranks read the standard input of `sucl run`.
#pragma once

#include <string>

namespace sucl::tools {

/// The name of what it holds where standard input is not to be read from a copy.
inline constexpr const char no_copy[] = "-";
/// What a rank reads that is to read nothing.
inline constexpr const char no_input[] = "/dev/null";

/// Makes the standard input of this process empty, so that what starts this process keeps its own.
/// Throws exit_error.
void leave_input();

/// Reads standard input to its end into memory, and leaves none. Returns a path by which processes
/// of the same user on this machine open the copy, each from its beginning, as long as this process
/// lives. Throws exit_error.
std::string copy_input();

/// For a rank: standard input becomes what is at a path of copy_input(); `no_copy` changes nothing.
/// False, with errno, if that is not there. Safe after a fork.
bool take_input(const char* path) noexcept;

}  // namespace sucl::tools
