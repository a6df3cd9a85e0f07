// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Work of numbered parts in several threads. Both functions return when all parts have ended, and
/// throw what the first of them, by its number, has thrown.
#pragma once

#include <sucl/export.hpp>

#include <cstddef>
#include <functional>

namespace sucl::base {

/// Runs `work(0)` to `work(count - 1)` at once, each in a thread of its own: they may wait for each
/// other. None begins where the system has no thread for some: std::system_error.
SUCL_CORE_API void run_concurrently(std::size_t count,
                                    const std::function<void(std::size_t)>& work);

/// Runs them in at most so many threads (0: one a processor), the calling one among them, and in
/// fewer where the system has no more.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace sucl::base
