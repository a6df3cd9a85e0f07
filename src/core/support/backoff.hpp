// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How a thread that polls passes its time.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace sucl::core {

/// Spins at first, then yields its processor, and after a long time without a completion, when
/// peers are far behind and polling only takes their processor away, sleeps for a hundredth of the
/// time that it has waited: short naps cost a computing thread more than yielding does, as each is
/// a timer, an interrupt and two changes of threads.
class backoff {
 public:
  explicit backoff(std::uint64_t spin_us) : m_spin(spin_us) {}

  /// Call after each poll with the number of operations that it completed.
  void after(int finished) {
    const auto now = std::chrono::steady_clock::now();
    if (finished > 0) m_last = now;
    const auto waited = now - m_last;
    if (waited > spin_limit)
      std::this_thread::sleep_for(std::min<decltype(waited)>(waited / 100, longest_nap));
    else if (waited > m_spin)
      sched_yield();
  }

 private:
  static constexpr std::chrono::milliseconds spin_limit{100};
  static constexpr std::chrono::milliseconds longest_nap{2};
  std::chrono::microseconds m_spin;
  std::chrono::steady_clock::time_point m_last = std::chrono::steady_clock::now();
};

}  // namespace sucl::core
