// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What a process has printed before it ends a job.
#pragma once

#include <sucl/export.hpp>

namespace sucl::core {

/// Writes what streams of C hold back, and waits, for at most half a second, until pipes on
/// standard output and error have been read: a launcher that notices a failure ends all ranks,
/// and drops what it has not read.
SUCL_CORE_API void hand_over_output() noexcept;

}  // namespace sucl::core
