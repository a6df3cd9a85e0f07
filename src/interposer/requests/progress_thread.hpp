// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Progress for requests while the program is somewhere else.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace sucl::interposer {

class requests;

/// A thread that makes progress now and then, because the program may wait inside MPI for a rank
/// that waits for this one's part of a collective. It never calls MPI, so any thread level will do,
/// and sleeps most of the time: a program that waits for its requests makes the progress itself.
class progress_thread {
 public:
  explicit progress_thread(requests& of) : m_requests(of) {}
  ~progress_thread() { stop(); }

  /// There are operations to progress.
  void call();
  /// The program has made progress by itself.
  void program_made_progress() { m_program_progressed.store(true, std::memory_order_relaxed); }
  void stop();

 private:
  void loop();

  requests& m_requests;
  std::atomic<bool> m_program_progressed{false};
  std::atomic<bool> m_asleep{true};
  std::mutex m_mutex;  ///< guards what follows
  std::condition_variable m_called;
  std::thread m_thread;
  bool m_stop = false;
  bool m_needed = false;
};

}  // namespace sucl::interposer
