// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Operations that are posted on native streams: the fast path on GPUs.
#pragma once

#include "core/context/communicator_context.hpp"
#include "core/operation/captured.hpp"
#include "core/queue/issue_queue.hpp"

#include <sucl/export.hpp>

#include <optional>

namespace sucl::core {

/// Issues operations that their issuer posts on a native stream, and knows which was the last. For
/// the core they are over once they are posted. Any thread, without the lock of the queue, unless
/// said otherwise.
class SUCL_CORE_API stream_path {
 public:
  /// Both must outlive this object.
  stream_path(communicator_context& c, issue_queue& queue) : m_context(c), m_queue(queue) {}

  /// Issues an operation, for post(), which must be called for these operations in the order of
  /// their issue. Nothing if its backend cannot order it on a stream, or if something before it has
  /// to be posted by the host first: then it is one for communicator::issue(). `layout` and the
  /// kinds of memory must be final, addresses need not be.
  std::optional<ticket> issue(const sucl_operation& record, const layouts& layout);

  /// Whether issue() would issue it now. The answer of a communicator that is part of another one,
  /// for the thread that issues all its operations.
  bool would_order(const sucl_operation& record);

  /// Posts such an operation; its memory is in the record, or in op_request::parts. `target` is the
  /// stream, from inside the command that owns its order at that moment; for what launches() it
  /// names the queue, in the thread that has issued the operation, at once. Never throws: failures
  /// are kept for communicator::check().
  void post(const ticket& t, void* target) noexcept;

  /// Whether an operation would go to a backend that launches kernels.
  bool launches(const sucl_operation& record);
  /// Whether it would, and needs the addresses of its memory when it is posted.
  bool launches_by_address(const sucl_operation& record);
  /// Whether the backend of an issued operation launches kernels.
  static bool launches(const ticket& t) { return t.get()->via->traits.launches; }

  /// Puts an operation into a graph that the device's native stream captures, and runs nothing:
  /// `target` is as for post(). False where it cannot be; then the graph is of no use.
  /// end_capture() ends it either way.
  bool capture(captured_operations& into, const sucl_operation& record, const layouts& layout,
               void* target, bool is_stream);
  void end_capture(captured_operations& captured);
  /// Whether nothing of the host is in flight that comes before, and the graph may be launched.
  bool may_replay(const captured_operations& captured);
  /// The operations count as called now; what is to be written before the launch, if anything.
  std::optional<graph_base> replay(captured_operations& captured);

  /// Whether device memory would go through scratch memory of the host on its way to whichever
  /// backend executes a send or recv.
  bool stages(const sucl_operation& message);
  /// Takes memory of the host for a message instead of its device memory, which the issuer
  /// copies from, before the message is ready, or to, once it is done. Only before it is ready.
  static void use_bounce_buffer(const ticket& t, void* host) { t.get()->bounce_buffer = host; }

  /// Returns when all of them are done; at once if something failed: then a stream may wait for a
  /// rank that is gone until it is aborted.
  void drain();

  /// Completes what the queue knows, where that is that nothing is in flight. With the lock.
  void add_to(progress_status& s) const;

 private:
  bool orders(const sucl_operation& record, const layouts& layout, const backend_instance& c) const;

  communicator_context& m_context;
  issue_queue& m_queue;
  // With the lock.
  sucl_operation m_last{};        ///< the last one posted on a stream
  std::uint64_t m_last_turn = 0;  ///< its number, if it is a collective that was called
};

}  // namespace sucl::core
