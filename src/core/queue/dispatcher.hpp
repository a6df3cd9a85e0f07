// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Has backends execute operations.
#pragma once

#include "base/elements/floating_point_mode.hpp"
#include "core/context/communicator_context.hpp"
#include "core/queue/op_request.hpp"

#include <sucl/error.hpp>

namespace sucl::core {

/// Has a backend execute one operation, natively or in slices. Knows nothing of the others. Only
/// with the mutex of the communicator's issue_queue.
class dispatcher {
 public:
  /// `c` must outlive this object.
  explicit dispatcher(communicator_context& c) : m_context(c) {}

  /// Chooses the backend and posts the operation there. True if it is done. Throws what fails.
  bool post(op_request& n) const;

  /// Progresses an operation that was posted. True if it is done. Throws what fails.
  bool test(op_request& n) const {
    const base::default_floating_point_mode mode;
    if (n.pipeline) return n.pipeline->step();
    std::int32_t done = 0;
    if (const auto status = n.via->via.table->test(n.via->via.comm, n.request, &done))
      fail(status, n);
    return done != 0;
  }

  /// The exception that is being handled, whichever it is, as the failure of an operation.
  error_info caught(const sucl_operation& record) const;

 private:
  void replace_memory(op_request& n) const;
  [[noreturn]] void fail(sucl_status status, const op_request& n) const;

  communicator_context& m_context;
};

}  // namespace sucl::core
