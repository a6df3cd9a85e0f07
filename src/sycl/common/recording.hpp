// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Queues that record a command graph (SYCL-Graph).
#pragma once

#include "sycl/common/state.hpp"

namespace sucl::sycl_layer {

/// What takes the operations of a thread while commands are captured for a graph of the driver.
class operation_capture {
 public:
  virtual ~operation_capture() = default;
  /// As start(). Leaves the capture where the operation cannot be in a graph.
  virtual ::sycl::event take(communicator_state& state, ::sycl::queue& queue,
                             const sucl_operation& record, const core::layouts& layout,
                             const std::vector<buffer_use>& buffers,
                             const std::vector<::sycl::event>& deps) = 0;
};
/// That of the calling thread; null: none.
operation_capture*& current_capture();
/// Leaves the program's function: something of it cannot be in a graph.
struct not_capturable {};

/// Whether the queue records, or would by waiting for one of these, an event of a graph.
bool is_recording(const ::sycl::queue& queue, const std::vector<::sycl::event>& deps);

/// Whether an event is one of a graph: a command that has been recorded, and never runs.
bool is_of_graph(::sycl::event e);

/// While one lives, operations that this thread submits to a queue that does not record are
/// refused.
class recording_scope {
 public:
  recording_scope();
  ~recording_scope();
  recording_scope(const recording_scope&) = delete;
  recording_scope& operator=(const recording_scope&) = delete;
};
/// Whether the calling thread is inside of one.
bool in_recording_scope();
/// Throws errc::unsupported inside of one.
void refuse_in_scope(communicator_state& state, const sucl_operation& record);

/// Throws an error of a call that is part of no graph. Nothing has been issued yet; where ranks
/// compare arguments the others get the error.
[[noreturn]] void refuse_call(communicator_state& state, const sucl_operation& record,
                              error_info wrong);

/// Throws errc::unsupported if the queue of a call that waits records, or if an event to wait for
/// is one of a graph.
void refuse_recording(communicator_state& state, const ::sycl::queue& queue,
                      const sucl_operation& record, const std::vector<::sycl::event>& deps);

}  // namespace sucl::sycl_layer
