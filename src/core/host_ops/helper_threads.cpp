// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/host_ops/helper_threads.hpp"

#include "base/threads/blocked_signals.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <system_error>

namespace sucl::core {
namespace {

// Polls before a helper sleeps, some tens of nanoseconds each: long enough for a peer to follow.
constexpr int polls_before_sleep = 2000;
// Polls of a part that another thread has begun, before the processor is yielded to it.
constexpr int polls_before_yield = 2000;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

std::shared_ptr<helper_threads> helper_threads::share(int count) {
  static std::mutex mutex;
  static std::weak_ptr<helper_threads> all;
  if (count <= 0) return nullptr;
  const std::lock_guard lock(mutex);
  auto found = all.lock();
  if (!found) {
    found.reset(new helper_threads(std::min(count, max)));
    if (found->count() == 0) return nullptr;
    all = found;
  }
  return found;
}

helper_threads::helper_threads(int count) {
  m_threads.reserve(static_cast<std::size_t>(count));
  const base::blocked_signals blocked;
  try {
    for (int i = 0; i < count; ++i) {
      m_threads.emplace_back([this] { help(); });
      pthread_setname_np(m_threads.back().native_handle(), "sucl-copy");
    }
  } catch (const std::system_error&) {  // no more threads: those that there are help
  }
}

helper_threads::~helper_threads() {
  m_stop = true;
  ++m_job;
  m_job.notify_all();
  for (std::thread& t : m_threads) t.join();
}

void helper_threads::help() {
  std::uint32_t seen = 0;
  for (;;) {
    std::uint32_t job = seen;
    for (int poll = 0; poll < polls_before_sleep && job == seen; ++poll) {
      pause_briefly();
      job = m_job.load(std::memory_order_acquire);
    }
    if (job == seen) {
      m_job.wait(seen, std::memory_order_acquire);
      continue;
    }
    if (m_stop.load(std::memory_order_relaxed)) return;
    seen = job;
    take_parts(job);
  }
}

void helper_threads::take_parts(std::uint32_t job) {
  std::uint64_t next = m_next.load(std::memory_order_acquire);
  for (;;) {
    const auto part = static_cast<std::uint32_t>(next);
    if (next >> 32 != job || part >= m_parts.load(std::memory_order_acquire)) return;
    const std::uint64_t size = m_part.load(std::memory_order_acquire);
    const std::uint64_t begin = part * size;
    const std::uint64_t n = std::min(size, m_total.load(std::memory_order_acquire) - begin);
    const function work = m_work.load(std::memory_order_acquire);
    const void* const context = m_context.load(std::memory_order_acquire);
    // Fails where one of them is of a later job, which has closed this one before it wrote them.
    if (!m_next.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel,
                                      std::memory_order_acquire))
      continue;
    work(context, begin, n);
    m_ended.fetch_add(1, std::memory_order_release);
    next = m_next.load(std::memory_order_acquire);
  }
}

void helper_threads::run(std::uint64_t total, std::uint64_t part, function work,
                         const void* context) {
  const std::uint64_t parts = (total + part - 1) / part;
  const std::unique_lock used(m_used, std::try_to_lock);
  if (!used || parts < 2 || parts >= UINT32_MAX) return work(context, 0, total);
  const std::uint32_t job = m_job.load(std::memory_order_relaxed) + 1;
  m_next.store(std::uint64_t{job} << 32 | UINT32_MAX, std::memory_order_relaxed);
  m_total.store(total, std::memory_order_release);
  m_part.store(part, std::memory_order_release);
  m_parts.store(static_cast<std::uint32_t>(parts), std::memory_order_release);
  m_work.store(work, std::memory_order_release);
  m_context.store(context, std::memory_order_release);
  m_ended.store(0, std::memory_order_relaxed);
  m_next.store(std::uint64_t{job} << 32, std::memory_order_release);
  m_job.store(job, std::memory_order_release);
  m_job.notify_all();
  take_parts(job);
  for (int poll = 0; m_ended.load(std::memory_order_acquire) != parts; ++poll)
    poll < polls_before_yield ? pause_briefly() : static_cast<void>(sched_yield());
}

}  // namespace sucl::core
