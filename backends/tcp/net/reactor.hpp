// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// One thread that waits for the sockets of the module. It does all its work under one lock, which
/// callers of the module take too.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace sucl::tcp {

using clock = std::chrono::steady_clock;

/// Owns a socket or waits for a time. Called under the lock.
class handler {
 public:
  virtual ~handler() = default;
  /// Something happened to its socket; of epoll.
  virtual void ready(std::uint32_t events) = 0;
  /// A time that was given to reactor::at() has come.
  virtual void due() {}
};

class reactor {
 public:
  reactor();
  ~reactor();
  reactor(const reactor&) = delete;
  reactor& operator=(const reactor&) = delete;

  /// The one of the process, which is never destroyed: its thread may be at work when the process
  /// ends. A child that was forked gets a new one.
  static const std::shared_ptr<reactor>& of_process();

  std::mutex& lock() { return m_lock; }

  // Under the lock:
  /// Watches a socket, which its handler closes after remove().
  void add(int socket, std::shared_ptr<handler> target, std::uint32_t events);
  void change(int socket, std::uint32_t events);
  void remove(int socket);
  /// Has due() called then, if the handler is still there.
  void at(clock::time_point when, const std::shared_ptr<handler>& target);
  bool in_own_thread() const { return std::this_thread::get_id() == m_thread.get_id(); }

 private:
  struct watched {
    std::shared_ptr<handler> target;
    std::uint64_t serial = 0;
  };
  void run();
  int wait_ms();
  void run_timers();
  void wake();
  void close_in_child();
  static void register_for_fork();

  std::mutex m_lock;
  int m_epoll = -1;
  int m_wake = -1;
  bool m_stop = false;
  bool m_inherited = false;
  std::uint64_t m_serial = 0;
  std::unordered_map<int, watched> m_watched;
  std::unordered_map<std::uint64_t, int> m_sockets;  ///< by serial: a number of a socket may return
  std::multimap<clock::time_point, std::weak_ptr<handler>> m_timers;
  std::thread m_thread;
};

}  // namespace sucl::tcp
