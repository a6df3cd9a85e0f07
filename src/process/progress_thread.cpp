// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "process/progress_thread.hpp"

#include "base/threads/blocked_signals.hpp"
#include "base/threads/thread_state.hpp"
#include "core/support/backoff.hpp"
#include "core/support/postponed_ends.hpp"
#include "process/process.hpp"

#include <pthread.h>

#include <iterator>
#include <utility>

namespace sucl::core {

void progress_thread::start_locked() {
  if (m_thread.joinable() || m_stop) return;
  const base::blocked_signals blocked;
  m_thread = std::thread([this] { loop(); });
  pthread_setname_np(m_thread.native_handle(), "sucl-progress");
}

void progress_thread::wake(communicator& c) {
  if (forked()) return;
  if (c.exchange_queued(true)) return;
  std::shared_ptr<communicator> used = c.weak_from_this().lock();
  if (!used) return;  // the thread that ends it makes its progress
  {
    std::lock_guard lock(m_mutex);
    if (m_stop) return;  // whom it kept would keep this
    start_locked();
    m_woken.push_back(std::move(used));
  }
  m_work.notify_one();
}

void progress_thread::stop() {
  if (forked()) return;  // the thread is the parent's
  {
    std::lock_guard lock(m_mutex);
    m_stop = true;
  }
  m_work.notify_one();
  if (m_thread.joinable() && m_thread.get_id() != std::this_thread::get_id()) m_thread.join();
}

// Collects newly woken communicators, sleeping if there is nothing at all to do. False to end.
bool progress_thread::take_work(std::vector<std::shared_ptr<communicator>>& active) {
  std::unique_lock lock(m_mutex);
  if (active.empty()) m_work.wait(lock, [this] { return m_stop || !m_woken.empty(); });
  active.insert(active.end(), std::make_move_iterator(m_woken.begin()),
                std::make_move_iterator(m_woken.end()));
  m_woken.clear();
  return !m_stop;
}

// It may hold the last reference to a communicator for a moment.
void progress_thread::loop() {
  postpone_ends_of_this_thread();
  m_number = base::this_thread_number();
  std::vector<std::shared_ptr<communicator>> active;
  backoff rest(m_process.settings().progress.spin_us);
  for (;;) {
    const bool idle = active.empty();
    if (!take_work(active)) return;
    if (idle)
      rest = backoff(m_process.settings().progress.spin_us);  // that was no waiting for peers
    int finished = 0;
    for (std::size_t i = 0; i < active.size();) {
      if (!active[i]->assisted() && active[i]->progress(&finished)) {
        ++i;
        continue;
      }
      // A thread that issues from here on wakes it again; whatever came before is seen by this
      // poll. For that it must read what the last one wrote who found the communicator queued
      // already: a store alone could be reordered with the poll.
      active[i]->exchange_queued(false);
      if (!active[i]->assisted() && active[i]->progress(&finished) &&
          !active[i]->exchange_queued(true)) {
        ++i;
        continue;
      }
      active[i] = std::move(active.back());
      active.pop_back();
    }
    rest.after(finished + (active.empty() ? 1 : 0));
  }
}

}  // namespace sucl::core
