// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/support/biased_mutex.hpp"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sucl::core {
namespace {

long membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0); }

bool has_barrier() noexcept {
  static const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  return registered;
}

}  // namespace

void biased_mutex::lock_slowly() {
  m_mutex.lock();
  revoke();
  while (m_inside.load(std::memory_order_acquire)) sched_yield();
  own();
}

bool biased_mutex::try_lock_slowly() {
  if (!m_mutex.try_lock()) return false;
  revoke();
  if (!m_inside.load(std::memory_order_acquire)) {
    own();
    return true;
  }
  m_mutex.unlock();
  return false;
}

// After the barrier a thread that had the bias either sees that it is not any more, or can be seen
// to be inside.
void biased_mutex::revoke() noexcept {
  if (m_bias_holder.load(std::memory_order_relaxed) == pthread_t{}) return;
  m_bias_holder.store(pthread_t{}, std::memory_order_release);
  membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  m_bias_score = 0;
}

void biased_mutex::own() noexcept {
  m_by_mutex = true;
  const pthread_t self = pthread_self();
  if (m_last != self) m_bias_score = 0;
  m_last = self;
}

void biased_mutex::grant() noexcept {
  if (!has_barrier()) return;
  if (m_first == pthread_t{}) m_first = m_last;
  if (m_first == m_last) m_bias_holder.store(m_last, std::memory_order_release);
}

}  // namespace sucl::core
