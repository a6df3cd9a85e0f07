// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sucl/persistent.hpp"

#include "base/error.hpp"
#include "sycl/common/recording.hpp"
#include "sycl/common/resolve.hpp"
#include "sycl/common/state.hpp"

#include <array>

namespace sucl {
namespace sycl_layer {

/// What a persistent operation keeps.
struct prepared {
  std::shared_ptr<communicator_state> state;
  std::array<detail::counts, 4> arrays;
  resolved call;
  std::optional<::sycl::queue> queue;
  std::vector<::sycl::event> deps;
  bool repeats = false;                ///< nothing has to be seen to when it is run but its events
  core::persistent_call run, started;  ///< by the form of the call
  std::uint64_t changes = 0;           ///< of the communicator, until when its memory is there
};

}  // namespace sycl_layer

namespace {

void check_alive(const sycl_layer::prepared& p) {
  core::throw_if_forked();
  sycl_layer::throw_if_in_function();
  if (!p.state->process()->alive())
    base::fail(errc::shut_down, "the runtime of this operation has been shut down",
               "Keep sucl::runtime alive while its operations are used");
}

std::vector<::sycl::event> together(const std::vector<::sycl::event>& a,
                                    const std::vector<::sycl::event>& b) {
  std::vector<::sycl::event> all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

}  // namespace

persistent persistent_communicator::submit(detail::request& request, const events& deps) {
  auto made = std::make_shared<sycl_layer::prepared>();
  made->state = m_state;
  made->deps = deps;
  check_alive(*made);
  made->changes = m_state->core().changes();
  detail::request own = request;
  std::size_t next = 0;
  for (const detail::counts** list :
       {&own.send_counts, &own.send_displs, &own.recv_counts, &own.recv_displs}) {
    detail::counts& kept = made->arrays[next++];
    if (!*list) continue;
    kept = **list;
    *list = &kept;
  }
  sycl_layer::resolve(*m_state, own, made->call);
  if (made->call.queue) made->queue = *made->call.queue;
  const auto* named = made->queue ? &*made->queue : m_state->queue() ? &*m_state->queue() : nullptr;
  const core::layouts& layout = made->call.layout;
  made->repeats = made->call.buffers.empty() && !layout.send && !layout.recv &&
                  layout.parts.empty() && !(named && named->is_in_order());
  made->run.record = made->started.record = made->call.record;
  made->started.blocking = false;
  return persistent(std::move(made));
}

std::size_t persistent_communicator::share(kind k, std::size_t elements) {
  return sycl_layer::share(*m_state, k, elements);
}

sycl_layer::prepared& persistent::operation() const {
  if (!m_operation)
    base::fail(errc::shut_down, "the persistent operation is empty",
               "Make one by communicator::persistent()");
  sycl_layer::prepared& p = *m_operation;
  check_alive(p);
  const core::communicator& core = p.state->core();
  if (const auto changes = core.changes(); changes != p.changes) {
    core.check_not_freed(p.call.record, p.changes);
    p.changes = changes;
  }
  return p;
}

::sycl::event persistent::start(const std::vector<::sycl::event>& deps) {
  sycl_layer::prepared& p = operation();
  const auto all = p.deps.empty() ? deps : together(p.deps, deps);
#ifndef SYCL_IMPLEMENTATION_ACPP
  if (p.repeats && !p.queue && sycl_layer::may_start_cached(*p.state, all))
    return sycl_layer::start_cached(*p.state, p.started);
#endif
  auto queue = sycl_layer::queue_of(*p.state, p.queue ? &*p.queue : nullptr);
  return sycl_layer::start_or_run(*p.state, queue, p.call, all);
}

#ifdef SYCL_EXT_ONEAPI_GRAPH
graph_node persistent::add_to(const modifiable_graph& graph, const std::vector<graph_node>& after) {
  sycl_layer::prepared& p = operation();
  return sycl_layer::add(*p.state, graph, p.call, after, p.deps);
}
#endif

void persistent::run(const std::vector<::sycl::event>& deps) {
  sycl_layer::prepared& p = operation();
  const auto& queue = p.queue ? p.queue : p.state->queue();
  if (queue) sycl_layer::refuse_recording(*p.state, *queue, p.call.record, together(p.deps, deps));
  for (const auto& e : p.deps) sycl_layer::await_event(e);
  if (p.repeats) {
    for (const auto& e : deps) sycl_layer::await_event(e);
    return p.state->core().run_cached(p.run);
  }
  sycl_layer::run_after(*p.state, p.call, p.queue ? &*p.queue : nullptr, deps);
}

persistent_communicator communicator::persistent() const {
  state();
  return persistent_communicator(m_state);
}

}  // namespace sucl
