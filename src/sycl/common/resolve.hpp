// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// From a call of the API to a checked record: sizes, memory kinds, buffers.
#pragma once

#include "sycl/common/implementation.hpp"
#include "sycl/common/state.hpp"

#include <sucl/graph.hpp>

#include <vector>

namespace sucl::sycl_layer {

/// A call that has passed every check that its rank can make.
struct resolved {
  sucl_operation record{};
  std::vector<sucl_operation> parts;  ///< of a group; record.parts points here
  core::layouts layout;
  std::vector<buffer_use> buffers;
  const ::sycl::queue* queue = nullptr;  ///< the one that the call names, or null
};

/// Checks a request and completes its record. Throws sucl::error with the operation's name.
/// Not movable afterwards where it has parts.
void resolve(communicator_state& state, const detail::request& request, resolved& result);

/// Throws errc::shut_down unless calls of the communicator can be made.
void check_alive(communicator_state& state);
/// As resolve(), of a communicator that lives; what is wrong is reported to the other ranks too,
/// where that can be.
void resolve_call(communicator_state& state, const detail::request& request, resolved& result);

/// The queue of a call: its own, unless null, the communicator's, or for host memory one that only
/// orders.
::sycl::queue queue_of(communicator_state& state, const ::sycl::queue* own);

#ifndef SYCL_IMPLEMENTATION_ACPP
/// Whether a call that returns an event, on the communicator's queue, may go by start_cached().
bool may_start_cached(communicator_state& state, const std::vector<::sycl::event>& deps);
#endif

/// Runs a call after `deps`: the blocking form. `own` is the queue that it names, or null.
void run_after(communicator_state& state, resolved& call, const ::sycl::queue* own,
               const std::vector<::sycl::event>& deps);

/// Starts a resolved call. Where MPI lets no thread of SuCL's own call it, the call is executed
/// before this returns; errc::unavailable for a lone send or recv, which could wait for a call that
/// is still to come.
::sycl::event start_or_run(communicator_state& state, ::sycl::queue& queue, resolved& call,
                           const std::vector<::sycl::event>& deps);

#ifdef SYCL_EXT_ONEAPI_GRAPH
/// Adds a resolved call to a command graph, behind `after` and behind `deps`, which are of commands
/// that queues have recorded into it. Each replay of the graph issues and awaits the operation.
graph_node add(communicator_state& state, modifiable_graph graph, const resolved& call,
               const std::vector<graph_node>& after, const std::vector<::sycl::event>& deps = {});
#endif

}  // namespace sucl::sycl_layer
