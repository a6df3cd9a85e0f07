// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How threads of a test wait for each other.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace sucl::testing {

/// For loops that poll: yields the processor. Where more threads compute than there are processors,
/// a thread that yields gets its processor back when their time slices end, long after what it
/// waits for has happened. So after a yield that took long the threads of this process sleep for a
/// while instead. Not for the library: threads of a CPU device that compute now and then look like
/// busy processors, and a pipeline of many slices took seven times as long.
inline void yield_or_sleep() {
  using namespace std::chrono_literals;
  using clock = std::chrono::steady_clock;
  constexpr std::chrono::nanoseconds long_yield = 500us, sleep = 50us, longest_busy = 100ms;
  // For so many times what the yield took the processors count as busy.
  constexpr int yields_saved = 16;
  static std::atomic<clock::rep> busy_until{0};
  const auto now = clock::now();
  if (now.time_since_epoch().count() < busy_until.load(std::memory_order_relaxed))
    return std::this_thread::sleep_for(sleep);
  sched_yield();
  const auto after = clock::now();
  if (after - now < long_yield) return;
  const auto busy = std::min<std::chrono::nanoseconds>(yields_saved * (after - now), longest_busy);
  busy_until.store((after + busy).time_since_epoch().count(), std::memory_order_relaxed);
}

}  // namespace sucl::testing
