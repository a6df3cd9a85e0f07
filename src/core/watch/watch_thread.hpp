// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The watch thread: finds out what holds operations up, while other threads may be stuck.
#pragma once

#include "core/deadlock/circle_search.hpp"
#include "core/deadlock/self_wait.hpp"
#include "core/watch/watchdog.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace sucl::core {

class process_context;

/// One thread a rank, which begins with the first thing to watch and sleeps between polls. It makes
/// no progress of operations: a backend that a thread is inside of may never come back.
class watch_thread {
 public:
  watch_thread(process_context& owner, const each_communicator& each)
      : m_process(owner),
        m_each(each),
        m_circles(owner),
        m_self_waits(owner),
        m_watchdog(owner, each, &m_circles) {}
  ~watch_thread() { stop(); }
  watch_thread(const watch_thread&) = delete;
  watch_thread& operator=(const watch_thread&) = delete;

  // Any thread.

  /// Runs the watchdog from now on.
  void watch();
  /// Compares now and then what ranks have had kernels do.
  void compare_calls();
  /// Checks now and then whether a call waits for long, and then why.
  void search_circles();
  /// Has the watchdog poll now.
  void poll_now();
  /// Ends the thread. Not from the thread itself.
  void stop();
  /// As of base::this_thread_number(); 0: it has not begun.
  std::int32_t number() const { return m_number; }

 private:
  using clock = std::chrono::steady_clock;
  void begin(std::atomic<bool>& duty);
  void loop();
  bool sleep();
  void search_waits(clock::time_point now);
  void poll(clock::time_point now);

  process_context& m_process;
  each_communicator m_each;
  std::mutex m_mutex;
  std::condition_variable m_notify;
  std::thread m_thread;
  std::atomic<std::int32_t> m_number{0};
  circle_search m_circles;
  self_wait_search m_self_waits;
  watchdog m_watchdog;
  std::atomic<bool> m_watches{false}, m_compares{false}, m_searches{false};
  clock::time_point m_last_poll, m_last_search;
  bool m_poll_now = false;  ///< with the mutex
  bool m_stop = false;
};

}  // namespace sucl::core
