// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How a process ends after SuCL has failed in it, or by exit() while a runtime of it is there.
#pragma once

#include <sucl/export.hpp>

#include <memory>

namespace sucl::core {

class peer_processes;

/// When the process exits it waits, for at most half a second, until the other processes of this
/// machine that have failed have ended or are about to: a launcher ends all of them, and what they
/// have not written yet is lost, once one has ended. To be called after what else is registered for
/// the exit and may end the job.
void exit_after_reports(std::shared_ptr<peer_processes> peers);

/// From now on exit() tells the other ranks at once if a runtime of this process cannot end any
/// more, and ends the process if the exit waits for the thread that has called it, as a thread of
/// the SYCL runtime. What is registered for the exit later comes before that: to be called again
/// once other libraries have started.
void watch_exit();

/// Whether an object lies in the stack of the calling thread, so that exit() does not destroy it.
SUCL_CORE_API bool is_on_stack(const void* object) noexcept;

}  // namespace sucl::core
