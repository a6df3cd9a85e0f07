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

/// How often an operation has come further on this thread.
inline std::uint64_t& advances() noexcept {
  static thread_local std::uint64_t count = 0;
  return count;
}
/// One has, whether or not it is done.
inline void note_advance() noexcept { ++advances(); }

/// Spins at first, then yields its processor, and after a long time in which nothing came further,
/// when peers are far behind and polling only takes their processor away, sleeps for a hundredth of
/// that time: short naps cost a computing thread more than yielding does, as each is a timer, an
/// interrupt and two changes of threads. A long operation moves in many steps, and a nap between
/// them would be what it waits for.
class backoff {
 public:
  explicit backoff(std::uint64_t spin_us) : m_spin(spin_us) {}

  /// Call after each poll with the number of operations that it completed.
  void after(int finished) {
    const auto now = std::chrono::steady_clock::now();
    const std::uint64_t steps = advances();
    if (finished > 0) m_last = now;
    if (finished > 0 || steps != m_steps) m_moved = now;
    m_steps = steps;
    const auto still = now - m_moved;
    if (still > spin_limit)
      std::this_thread::sleep_for(std::min<decltype(still)>(still / 100, longest_nap));
    else if (now - m_last > m_spin)
      sched_yield();
  }

 private:
  static constexpr std::chrono::milliseconds spin_limit{100};
  static constexpr std::chrono::milliseconds longest_nap{2};
  std::chrono::microseconds m_spin;
  std::chrono::steady_clock::time_point m_last = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point m_moved = m_last;
  std::uint64_t m_steps = advances();
};

}  // namespace sucl::core
