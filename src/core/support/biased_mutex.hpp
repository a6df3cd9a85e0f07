// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A mutex for what one thread nearly always locks.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace sucl::core {

/// A mutex that may be biased to one thread, always the same: that one locks and unlocks it by
/// plain stores, where a locked instruction would wait until flags that it has just stored for
/// other processes have arrived. Another thread that wants it revokes the bias first, by a barrier
/// on all processors (membarrier), which costs some microseconds. Biased locking, after Kawachiya,
/// Koseki and Onodera, "Lock reservation", OOPSLA 2002. Not recursive.
class biased_mutex {
 public:
  biased_mutex() = default;
  biased_mutex(const biased_mutex&) = delete;
  biased_mutex& operator=(const biased_mutex&) = delete;

  void lock() {
    if (!enter()) lock_slowly();
  }
  bool try_lock() { return enter() || try_lock_slowly(); }
  void unlock() {
    m_turns.store(turns() + 1, std::memory_order_relaxed);
    if (!m_by_mutex) return m_inside.store(false, std::memory_order_release);
    m_by_mutex = false;
    m_mutex.unlock();
  }

  /// The thread that has it locked does something that is worth a bias. It is granted after many
  /// of them in which no other thread has locked it; never where the system has no such barrier,
  /// nor to another thread than the first that got it.
  void bias_to_me() noexcept {
    if (m_by_mutex && m_bias_score < enough && ++m_bias_score == enough) grant();
  }

  /// How often it has been unlocked. Any thread, also without the lock.
  std::uint64_t turns() const noexcept { return m_turns.load(std::memory_order_relaxed); }

  /// Whether the calling thread has the bias now.
  bool is_biased_to_me() const noexcept {
    return m_bias_holder.load(std::memory_order_relaxed) == pthread_self();
  }

 private:
  /// Little beside what it costs to revoke a bias.
  static constexpr int enough = 256;

  bool enter() noexcept {
    if (!is_biased_to_me()) return false;
    m_inside.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // with the barrier of revoke()
    if (m_bias_holder.load(std::memory_order_acquire) == pthread_self()) return true;
    m_inside.store(false, std::memory_order_release);
    return false;
  }
  void lock_slowly();
  bool try_lock_slowly();
  void own() noexcept;
  void grant() noexcept;
  void revoke() noexcept;

  std::atomic<pthread_t> m_bias_holder{};  ///< changed by the owner of m_mutex
  /// The thread with the bias has it. Only one thread may ever write this: it may have been stopped
  /// before its store, and lost the bias meanwhile.
  std::atomic<bool> m_inside{false};
  std::atomic<std::uint64_t> m_turns{0};  ///< written by who has it
  bool m_by_mutex = false;                ///< its owner has m_mutex
  int m_bias_score = 0;
  pthread_t m_last{};   ///< the last owner of m_mutex
  pthread_t m_first{};  ///< the first thread with a bias
  std::mutex m_mutex;
};

}  // namespace sucl::core
