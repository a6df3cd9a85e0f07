// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Children made by fork(): what their parent has made is not theirs.
#pragma once

#include <sucl/export.hpp>

#include <atomic>

namespace sucl::core {

/// Set in a process that was forked from one in which SuCL runs. Nothing of SuCL's may be used
/// there, nor ended: its threads and its rank in the job are the parent's. vfork, posix_spawn and
/// system() do not set it.
SUCL_CORE_API extern std::atomic<bool> forked_child;

inline bool forked() noexcept { return forked_child.load(std::memory_order_relaxed); }

/// Throws errc::shut_down.
[[noreturn]] SUCL_CORE_API void throw_forked();

inline void throw_if_forked() {
  if (forked()) [[unlikely]]
    throw_forked();
}

/// SuCL runs in this process until this is called as often with `false` as with `true`.
void note_running(bool starts);

}  // namespace sucl::core
