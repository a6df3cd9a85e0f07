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

  // The functions of `communicator` with these names describe them.

  std::optional<ticket> issue_on_stream(const sucl_operation& record, const layouts& layout);
  bool would_order_on_stream(const sucl_operation& record);
  void post_on_stream(const ticket& t, void* stream) noexcept;
  bool launches(const sucl_operation& record);
  bool launches_by_address(const sucl_operation& record);
  bool stages(const sucl_operation& message);
  bool capture(captured_operations& into, const sucl_operation& record, const layouts& layout,
               void* target, bool is_stream);
  void end_capture(captured_operations& captured);
  bool may_replay(const captured_operations& captured);
  std::optional<graph_base> replay(captured_operations& captured);

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
