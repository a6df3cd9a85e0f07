// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/watch/watch_thread.hpp"

#include "base/threads/blocked_signals.hpp"
#include "base/threads/thread_state.hpp"
#include "core/control/process_context.hpp"
#include "core/support/forked.hpp"
#include "core/support/postponed_ends.hpp"

#include <pthread.h>

#include <utility>

namespace sucl::core {
namespace {

using namespace std::chrono_literals;

constexpr auto watch_period = 20ms;

}  // namespace

void watch_thread::begin(std::atomic<bool>& duty) {
  const std::lock_guard lock(m_mutex);
  if (m_stop || duty.exchange(true)) return;
  if (m_thread.joinable()) return m_notify.notify_one();
  const base::blocked_signals blocked;
  m_thread = std::thread([this] { loop(); });
  pthread_setname_np(m_thread.native_handle(), "sucl-watch");
}

void watch_thread::watch() { begin(m_watches); }

void watch_thread::compare_calls() { begin(m_compares); }

void watch_thread::search_circles() { begin(m_searches); }

void watch_thread::poll_now() {
  {
    const std::lock_guard lock(m_mutex);
    if (std::exchange(m_poll_now, true)) return;
  }
  m_notify.notify_one();
}

void watch_thread::stop() {
  if (forked()) return;  // the thread is the parent's
  {
    const std::lock_guard lock(m_mutex);
    m_stop = true;
  }
  m_notify.notify_one();
  if (m_thread.joinable() && m_thread.get_id() != std::this_thread::get_id()) m_thread.join();
}

// Until the next poll is due. False to end.
bool watch_thread::sleep() {
  std::unique_lock lock(m_mutex);
  const bool often = m_watches || m_compares;
  m_notify.wait_for(lock, often ? watch_period : circle_search::period,
                    [&] { return m_stop || m_poll_now || often != (m_watches || m_compares); });
  if (std::exchange(m_poll_now, false)) m_last_poll = {};
  return !m_stop;
}

void watch_thread::search_waits(clock::time_point now) {
  if (m_circles.poll(now)) m_watches = true;
  const auto calls = m_circles.long_calls(now);
  for (const auto& found : m_self_waits.poll(calls, now, m_circles.quiet())) {
    // The thread that waits may call for another rank as soon as it has the error.
    for (const auto& c : found.siblings) c->fail_all(info_of(found.why));
    m_watchdog.fail(found.in, found.why);
  }
}

void watch_thread::poll(clock::time_point now) {
  if (m_searches && now - m_last_search >= circle_search::period) {
    m_last_search = now;
    search_waits(now);
  }
  if (now - m_last_poll < watch_period) return;
  m_last_poll = now;
  if (m_watches) m_watchdog.poll(now);
  if (!m_compares) return;
  m_each([&](const std::shared_ptr<communicator>& c) {
    // Its progress gives up what waits for them.
    if (c->compares_calls() && c->compare_calls()) m_process.wake(*c);
  });
}

// It may hold the last reference to a communicator for a moment.
void watch_thread::loop() {
  postpone_ends_of_this_thread();
  m_number = base::this_thread_number();
  do poll(clock::now());
  while (sleep());
}

}  // namespace sucl::core
