// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sycl/common/recording.hpp"

#include "base/error.hpp"

#include <algorithm>

namespace sucl::sycl_layer {

#ifdef SYCL_EXT_ONEAPI_GRAPH
namespace {

namespace graphs = ::sycl::ext::oneapi::experimental;

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

[[noreturn]] void refuse(communicator_state& state, const sucl_operation& record,
                         const char* fact) {
  error_info info;
  info.message = std::string(fact) + ", and operations of communicators cannot be part of one";
  info.code = errc::unsupported;
  info.hint = "Call it before begin_recording() or after end_recording(), on every rank";
  info.operation = name(static_cast<kind>(record.kind));
  info.rank = state.core().rank();
  state.core().refuse(record, info);
  throw error(std::move(info));
}

}  // namespace

void refuse_recording(communicator_state& state, const ::sycl::queue& queue,
                      const sucl_operation& record, const std::vector<::sycl::event>& deps) {
  if (queue.ext_oneapi_get_state() == graphs::queue_state::recording)
    refuse(state, record, "the queue is recording a command graph");
  if (std::any_of(deps.begin(), deps.end(), is_of_graph))
    refuse(state, record, "an event to wait for is of a queue that is recording a command graph");
}

#else

void refuse_recording(communicator_state&, const ::sycl::queue&, const sucl_operation&,
                      const std::vector<::sycl::event>&) {}

#endif

}  // namespace sucl::sycl_layer
