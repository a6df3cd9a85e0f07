// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Progress for requests while the program is somewhere else.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace sucl::pmpi {

class requests;

/// A thread that makes progress now and then, because the program may wait inside MPI for a rank
/// that waits for this one's part of a collective. It never calls MPI, so any thread level will do,
/// and sleeps most of the time: a program that waits for its requests makes the progress itself.
class caretaker {
 public:
  explicit caretaker(requests& of) : m_requests(of) {}
  ~caretaker() { stop(); }

  /// There is something to look after.
  void call();
  /// The program has looked by itself.
  void relieve() { m_relieved.store(true, std::memory_order_relaxed); }
  void stop();

 private:
  void loop();

  requests& m_requests;
  std::atomic<bool> m_relieved{false};
  std::atomic<bool> m_asleep{true};
  std::mutex m_mutex;  ///< guards what follows
  std::condition_variable m_called;
  std::thread m_thread;
  bool m_stop = false;
  bool m_needed = false;
};

}  // namespace sucl::pmpi
