// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/requests/progress_thread.hpp"

#include "base/threads/blocked_signals.hpp"
#include "interposer/requests/requests.hpp"

#include <pthread.h>

namespace sucl::interposer {
namespace {

using namespace std::chrono_literals;

// Between polls: while the program polls too, and while only this thread does.
constexpr auto long_nap = 500us, short_nap = 50us;
// Polls that find no operation, after which the thread sleeps until it is called.
constexpr int max_idle = 200;

}  // namespace

void progress_thread::call() {
  if (!m_asleep.load()) return;  // it polls again before it sleeps
  {
    const std::lock_guard lock(m_mutex);
    if (m_stop) return;
    m_needed = true;
    if (!m_thread.joinable()) {
      const base::blocked_signals blocked;
      m_thread = std::thread([this] { loop(); });
      pthread_setname_np(m_thread.native_handle(), "sucl-requests");
    }
  }
  m_called.notify_one();
}

void progress_thread::stop() {
  {
    const std::lock_guard lock(m_mutex);
    m_stop = true;
  }
  m_called.notify_one();
  if (m_thread.joinable()) m_thread.join();
}

void progress_thread::loop() {
  int idle = 0;
  std::unique_lock lock(m_mutex);
  while (!m_stop) {
    if (idle > max_idle) {
      m_asleep.store(true);
      // What was started before that store is seen here, what comes after it calls.
      if (!m_requests.any_own()) m_called.wait(lock, [this] { return m_stop || m_needed; });
      idle = 0;
    }
    m_asleep.store(false);
    m_needed = false;
    const bool alone = m_requests.any_own() && !m_program_progressed.exchange(false);
    lock.unlock();
    if (alone) m_requests.progress();
    idle = m_requests.any_own() ? 0 : idle + 1;
    lock.lock();
    m_called.wait_for(lock, alone ? short_nap : long_nap, [this] { return m_stop; });
  }
}

}  // namespace sucl::interposer
