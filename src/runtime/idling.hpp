// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How a thread that polls passes its time.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <thread>

namespace sucl::core {

/// Spins at first, then yields its processor, and after a long time without a completion, when
/// peers are far behind and polling only takes their processor away, sleeps for moments.
class idling {
 public:
  explicit idling(std::uint64_t spin_us) : m_spin(spin_us) {}

  /// Call after each poll with the number of operations that it completed.
  void after(int finished) {
    const auto now = std::chrono::steady_clock::now();
    if (finished > 0) m_last = now;
    const auto waited = now - m_last;
    if (waited > patience)
      std::this_thread::sleep_for(nap);
    else if (waited > m_spin)
      sched_yield();
  }

 private:
  static constexpr std::chrono::milliseconds patience{100};
  static constexpr std::chrono::microseconds nap{50};
  std::chrono::microseconds m_spin;
  std::chrono::steady_clock::time_point m_last = std::chrono::steady_clock::now();
};

}  // namespace sucl::core
