// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Work that waits for each other, in a thread each.
#pragma once

#include <sucl/export.hpp>

#include <cstddef>
#include <functional>

namespace sucl::core {

/// Runs `work(0)` to `work(count - 1)` at once, each in a thread of its own, and returns when all
/// have ended. Throws what the first of them, by its number, has thrown. None begins where the
/// system has no thread for some: std::system_error.
SUCL_CORE_API void side_by_side(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace sucl::core
