// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the system knows of the threads of this process.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sucl::base {

/// Number of the calling thread. Cheap.
std::int32_t this_thread_number() noexcept;

/// A text that changes whenever the thread has run; empty: it is gone.
std::string trace_of_thread(std::int32_t thread);
/// Whether it sleeps, by that text.
bool sleeps(const std::string& trace);
/// Whether it waits for something that another thread has to do, for as long as that takes.
bool waits_for_thread(std::int32_t thread);
/// The same, where only a thread of this process can do it.
bool waits_for_own_thread(std::int32_t thread);
/// Its name; empty: it is gone.
std::string name_of_thread(std::int32_t thread);
/// Whether it is a thread of this process that has not ended. Without /proc.
bool lives(std::int32_t thread) noexcept;
/// All threads of this process, the calling one among them; empty: the system does not say.
std::vector<std::int32_t> threads_of_process();

/// Processor time that this process has used.
std::chrono::nanoseconds processor_time();

}  // namespace sucl::base
