// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Programs that run with more privileges than the user who started them.
#pragma once

#include <sys/auxv.h>

namespace sucl::base {

/// Whether this process is one (setuid, setgid or capabilities of its file). What it was started
/// with, its environment and its working directory, then decides nothing; secure_getenv() returns
/// null there.
inline bool raised_privileges() noexcept { return getauxval(AT_SECURE) != 0; }

}  // namespace sucl::base
