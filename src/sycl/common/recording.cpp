// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sycl/common/recording.hpp"

#include "base/error.hpp"

#include <algorithm>

namespace sucl::sycl_layer {
namespace {

thread_local int scopes = 0;

}  // namespace

operation_capture*& current_capture() {
  thread_local operation_capture* current = nullptr;
  return current;
}

recording_scope::recording_scope() { ++scopes; }
recording_scope::~recording_scope() { --scopes; }
bool in_recording_scope() { return scopes > 0; }

void refuse_in_scope(communicator_state& state, const sucl_operation& record) {
  if (scopes == 0) return;
  error_info info;
  info.code = errc::unsupported;
  info.message = "communicator::record() is recording, and this operation is on another queue";
  info.hint =
      "Use a communicator of the queue that records, or pass an event of a command that was "
      "recorded";
  refuse_call(state, record, std::move(info));
}

void refuse_call(communicator_state& state, const sucl_operation& record, error_info wrong) {
  wrong.operation = core::kind_name(record.kind);
  wrong.rank = state.core().rank();
  state.core().refuse(record, wrong);
  throw error(std::move(wrong));
}

#ifdef SYCL_EXT_ONEAPI_GRAPH
namespace {

namespace graphs = ::sycl::ext::oneapi::experimental;

bool records(const ::sycl::queue& queue) {
  return queue.ext_oneapi_get_state() == graphs::queue_state::recording;
}

}  // namespace

// Events of a graph call themselves complete, and cannot be waited for.
bool is_of_graph(::sycl::event e) {
  if (!complete({e})) return false;
  try {
    e.wait();
    return false;
  } catch (const ::sycl::exception&) {
    return true;
  }
}

bool is_recording(const ::sycl::queue& queue, const std::vector<::sycl::event>& deps) {
  return records(queue) || std::any_of(deps.begin(), deps.end(), is_of_graph);
}

void refuse_recording(communicator_state& state, const ::sycl::queue& queue,
                      const sucl_operation& record, const std::vector<::sycl::event>& deps) {
  if (!is_recording(queue, deps)) return;
  error_info info;
  info.code = errc::unsupported;
  info.message = records(queue)
                     ? "the queue is recording a command graph, and a call that waits for its "
                       "operation cannot be part of one"
                     : "an event to wait for is of a queue that is recording a command graph, and "
                       "happens only when the graph is replayed";
  info.hint =
      "Call the form that returns an event, or call it before begin_recording() or after "
      "end_recording(), on every rank";
  refuse_call(state, record, std::move(info));
}

#else

bool is_of_graph(::sycl::event) { return false; }
bool is_recording(const ::sycl::queue&, const std::vector<::sycl::event>&) { return false; }

void refuse_recording(communicator_state&, const ::sycl::queue&, const sucl_operation&,
                      const std::vector<::sycl::event>&) {
  if (current_capture()) throw not_capturable{};  // a call that waits
}

#endif

}  // namespace sucl::sycl_layer
