// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Errors that never reach the program.
#pragma once

#include <sucl/error.hpp>
#include <sucl/export.hpp>

namespace sucl::core {

/// To be called when SuCL starts: what the program registers later runs before.
void prepare_exit_status();

/// Has the process end with a status other than 0, whatever main() returns.
SUCL_CORE_API void fail_at_exit() noexcept;

/// Prints an error that no call has thrown, and does so.
SUCL_CORE_API void report_at_last(const error_info& info);

}  // namespace sucl::core
