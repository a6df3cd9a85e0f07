// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Calls that come again, run by what was worked out for the one before.
#pragma once

#include "core/context/communicator_context.hpp"
#include "core/fast_path/call_cache.hpp"
#include "core/queue/issue_queue.hpp"

#include <sucl/export.hpp>

#include <optional>

namespace sucl::core {

/// Runs calls of both forms that have run before. Any thread, without the lock of the queue unless
/// said otherwise.
class SUCL_CORE_API prepared_calls {
 public:
  /// All arguments must outlive this object.
  prepared_calls(communicator_context& c, issue_queue& queue, call_cache& calls)
      : m_context(c), m_queue(queue), m_calls(calls) {}

  /// Runs a collective, if its backend can prepare it and the peers are near. With the lock, while
  /// the queue is idle. False: the same operation must be started next, and goes on where this has
  /// ended. Throws what fails.
  bool run(persistent_call& call);

  /// Does what communicator::issue() does for a call without dependencies that is known to be
  /// right, because the same one has been issued before: what was worked out for that one is used
  /// again. Nothing if it is not known. Where the result says done the operation has not failed,
  /// and may be null.
  std::optional<issue_result> issue(const sucl_operation& requested, const observer& watch);
  /// The same for a caller that keeps the call, which is not a blocking one: the first time it is
  /// communicator::issue(). One thread at a time for one call.
  issue_result issue(persistent_call& call, const observer& watch);
  /// `requested`, the whole call as it came, was issued as `record`, which was ready and whose
  /// memory is contiguous: issue() may be given it next time.
  void remember_issued(const sucl_operation& requested, const sucl_operation& record);

  /// Whether the backend takes the operation as it is, if its memory is contiguous. Without the
  /// layout, which a rank has for itself: all ranks take the same path. With the lock.
  bool is_unstaged(const sucl_operation& record, const backend_instance& c) const;

 private:
  issue_result issue_locked(persistent_call& call, const observer& watch,
                            issue_queue::held_lock& lock);
  // Every rank must come to the same answer.
  bool may_prepare() const {
    return !m_context.stages.comm_stages && !m_queue.validation().active();
  }

  communicator_context& m_context;
  issue_queue& m_queue;
  call_cache& m_calls;
};

}  // namespace sucl::core
