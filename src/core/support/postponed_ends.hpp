// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Ends of objects that may wait for a device, in threads on which operations on the device depend.
#pragma once

#include <sucl/export.hpp>

#include <atomic>
#include <functional>

namespace sucl::core {

/// From now on the calling thread ends nothing itself: freeing memory of a device waits for all
/// that runs there, and that may wait for this thread.
SUCL_CORE_API void postpone_ends_of_this_thread() noexcept;

/// Calls `end`, or leaves it to end_postponed() in a thread that postpones. Any thread.
SUCL_CORE_API void end_or_postpone(std::function<void()> end);

SUCL_CORE_API extern std::atomic<bool> any_postponed;
SUCL_CORE_API void end_all_postponed();

/// Calls what was left. For threads that may wait for devices.
inline void end_postponed() {
  if (any_postponed.load(std::memory_order_acquire)) [[unlikely]]
    end_all_postponed();
}

}  // namespace sucl::core
