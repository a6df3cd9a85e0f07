// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Whether what this rank has called is what the ranks on other nodes have.
#pragma once

#include "core/context/communicator_context.hpp"
#include "core/queue/issue_queue.hpp"

#include <sucl/export.hpp>

#include <atomic>
#include <cstdint>

namespace sucl::core {

/// How far the calls of a communicator are known to be the same on all ranks. The progress thread
/// compares them, beside the operations, and notes here what it has found. Any thread, without the
/// lock of the queue.
class SUCL_CORE_API call_agreement {
 public:
  /// Both must outlive this object.
  call_agreement(communicator_context& c, issue_queue& queue) : m_context(c), m_queue(queue) {}

  /// Whether calls are compared at all. Only then may the other functions be called.
  bool compares() const { return m_queue.calls() != nullptr; }
  /// The number of the last call of this rank.
  std::uint64_t calls_made() const { return m_queue.calls()->last(); }
  /// The histories of some of its calls.
  call_excerpt excerpt(std::uint64_t from, std::uint64_t stride, std::uint64_t count) {
    return m_queue.excerpt(from, stride, count);
  }

  /// The calls up to this one are the same as those of rank 0. On rank 0: of all ranks.
  void note(std::uint64_t number) { m_agreed.store(number, std::memory_order_release); }
  std::uint64_t agreed() const { return m_agreed.load(std::memory_order_acquire); }
  /// Rank 0, which is_awaited(), has said so to all others.
  void note_sent() { m_is_sent.store(true, std::memory_order_release); }
  /// Whether the communicator ends once all calls have been compared.
  bool is_awaited() const { return m_is_awaited.load(std::memory_order_acquire); }

  /// Before the communicator ends: waits, not for long, until the last call has been compared with
  /// those of the others. No rank waits for one that is late. Rank 0, which compares, may be the
  /// first to end: it leaves no rank without an answer.
  void await();

 private:
  bool is_reached() const;

  communicator_context& m_context;
  issue_queue& m_queue;
  std::atomic<std::uint64_t> m_agreed{0};
  std::atomic<bool> m_is_awaited{false};
  std::atomic<bool> m_is_sent{false};  ///< on rank 0
};

}  // namespace sucl::core
