// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The progress thread: operations move on while their callers compute.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace sucl::core {

class communicator;
class process;

/// One thread a process. Sleeps while no communicator has work; with work it polls, first spinning,
/// then yielding its processor, and after a while of waiting for peers sleeping for moments.
class progress_thread {
 public:
  explicit progress_thread(process& owner) : m_process(owner) {}
  ~progress_thread() { stop(); }
  progress_thread(const progress_thread&) = delete;
  progress_thread& operator=(const progress_thread&) = delete;

  /// A communicator has work. Any thread; starts the thread when it is first needed.
  void wake(communicator& c);
  /// Ends the thread. Not from the thread itself.
  void stop();
  /// As of base::this_thread_number(); 0: it has not begun.
  std::int32_t number() const { return m_number; }

 private:
  void start_locked();
  void loop();
  bool take_work(std::vector<std::shared_ptr<communicator>>& active);

  process& m_process;
  std::mutex m_mutex;
  std::condition_variable m_work;
  std::vector<std::shared_ptr<communicator>> m_woken;
  std::thread m_thread;
  std::atomic<std::int32_t> m_number{0};
  bool m_stop = false;
};

}  // namespace sucl::core
