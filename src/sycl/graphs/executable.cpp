// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Sequences of commands: a command graph, or a function of the program that is called again.
#include "base/error.hpp"
#include "sycl/common/adaptivecpp.hpp"
#include "sycl/common/recording.hpp"
#include "sycl/graphs/native_capture.hpp"
#include "sycl/graphs/record.hpp"

#include <sucl/communicator.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>

namespace sucl {
namespace sycl_layer {

/// What an executable replays.
struct replayed_sequence {
  std::weak_ptr<communicator_state> state;
  ::sycl::queue queue;
  std::function<void()> calls;  ///< where there is no graph
  native_replays native;        ///< of these calls
#ifdef SYCL_EXT_ONEAPI_GRAPH
  std::optional<::sycl::ext::oneapi::experimental::command_graph<
      ::sycl::ext::oneapi::experimental::graph_state::executable>>
      graph;
#endif
};

namespace {

#ifdef SYCL_EXT_ONEAPI_GRAPH

namespace graphs = ::sycl::ext::oneapi::experimental;

bool has_graphs(communicator_state& state, const ::sycl::queue& queue) {
  const bool streams = state.on_device() && state.on_device()->streams();
  return !streams && (queue.get_device().has(::sycl::aspect::ext_oneapi_limited_graph) ||
                      queue.get_device().has(::sycl::aspect::ext_oneapi_graph));
}

// Whether DPC++ executes the graph as its edges say. It cuts graphs at host tasks, as operations
// are, and (2026.1, without SuCL in it) executes a kernel too early that waits for one next to it
// and for a command before the last host task, and crashes on some graphs that branch there. So:
// one command after the other, and no such kernel.
bool is_executed_in_order(const modifiable_graph& g) {
  const auto nodes = g.get_nodes();
  const auto is_host_task = [&](std::size_t i) {
    return nodes[i].get_type() == graphs::node_type::host_task;
  };
  std::size_t begin = 0;  // of the commands since the last host task
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    if (is_host_task(i) || is_host_task(i - 1)) begin = i;
    const auto before = nodes[i].get_predecessors();
    const auto follows = [&](const graph_node& n) {
      return std::find(before.begin(), before.end(), n) != before.end();
    };
    if (!follows(nodes[i - 1])) return false;
    if (i > begin &&
        std::any_of(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(begin), follows))
      return false;
  }
  return true;
}

void record_graph(replayed_sequence& s, const std::function<void()>& calls) {
  modifiable_graph recorded(s.queue.get_context(), s.queue.get_device(),
                            {graphs::property::graph::assume_buffer_outlives_graph{}});
  recorded.begin_recording(s.queue);
  try {
    const recording_scope scope;
    calls();
  } catch (...) {
    recorded.end_recording();
    throw;
  }
  recorded.end_recording();
  if (!is_executed_in_order(recorded))
    base::fail(errc::unsupported,
               "the recorded commands have an order that DPC++ does not keep in graphs with host "
               "tasks, as operations are here: some run side by side, or one waits for another "
               "and for an event of before the last operation",
               "Record on an in-order queue, and pass no events to commands of that queue");
  s.graph = recorded.finalize();
}

#endif

// Stands in the order of calls for what this rank records.
void note_recording(communicator_state& state) {
  sucl_operation nothing{};
  nothing.kind = SUCL_KIND_BARRIER;
  static_cast<void>(state.core().record(nothing));
}

// Throws after the end of the communicator.
std::shared_ptr<communicator_state> state_of(const replayed_sequence& s) {
  auto state = s.state.lock();
  if (!state || !state->process()->alive() || !state->core().alive())
    base::fail(errc::shut_down, "the communicator that has recorded this has ended",
               "Keep the communicator, and sucl::runtime, while its executables are used");
  return state;
}

void record_into(replayed_sequence& s, communicator_state& state, std::function<void()> calls) {
  if (!calls)
    base::fail(errc::invalid_argument, "the function to record is empty",
               "Pass one that submits commands");
#ifdef SYCL_EXT_ONEAPI_GRAPH
  if (has_graphs(state, s.queue)) return record_graph(s, calls);
#endif
  note_recording(state);
  s.native = native_replays(state, s.queue);
  s.calls = std::move(calls);
}

// The event of all that was submitted.
::sycl::event event_of_all(::sycl::queue& queue) {
#ifdef SYCL_IMPLEMENTATION_ACPP
  auto done = queue.submit([&](::sycl::handler& h) {
    if (!queue.is_in_order()) h.depends_on(queue.get_wait_list());
    h.AdaptiveCpp_enqueue_custom_operation([](::sycl::interop_handle&) {});
  });
  flush();
  return done;
#else
  return queue.ext_oneapi_submit_barrier();
#endif
}

}  // namespace
}  // namespace sycl_layer

executable communicator::record(const ::sycl::queue& queue, std::function<void()> calls) const {
  auto& on = state();
  sycl_layer::check_alive(on);
  auto made = std::make_shared<sycl_layer::replayed_sequence>();
  made->state = m_state;
  made->queue = queue;
  sycl_layer::record_into(*made, on, std::move(calls));
  return executable(std::move(made));
}

void executable::update(std::function<void()> calls) {
  auto& s = sequence();
  const auto state = sycl_layer::state_of(s);
  state->core().check();
  state->last_replay().wait();
  sycl_layer::record_into(s, *state, std::move(calls));
}

sycl_layer::replayed_sequence& executable::sequence() const {
  core::throw_if_forked();
  if (!m_sequence)
    base::fail(errc::shut_down, "the executable is empty", "Make one by communicator::record()");
  return *m_sequence;
}

bool executable::is_graph() const { return !sequence().calls || sequence().native.has_graph(); }

::sycl::event executable::replay(const std::vector<::sycl::event>& deps) {
  auto& s = sequence();
  const auto state = sycl_layer::state_of(s);
  state->core().check();
#ifdef SYCL_EXT_ONEAPI_GRAPH
  if (s.graph) {
    auto after = deps;
    after.push_back(state->last_replay());
    state->last_replay() = s.queue.ext_oneapi_graph(*s.graph, after);
    return state->last_replay();
  }
#endif
  for (auto e : deps) e.wait();
  if (auto done = s.native.replay(s.calls)) return *done;
  return sycl_layer::event_of_all(s.queue);
}

#ifdef SYCL_EXT_ONEAPI_GRAPH

graph_communicator communicator::in_graph(const modifiable_graph& graph,
                                          const std::vector<graph_node>& after) const {
  state();
  return {m_state, graph, after};
}

graph_node graph_communicator::submit(detail::request& request, const events& deps) {
  sycl_layer::resolved call;
  sycl_layer::resolve_call(*m_state, request, call);
  return sycl_layer::add(*m_state, m_graph, call, m_after, deps);
}

std::size_t graph_communicator::share(kind k, std::size_t elements) {
  return sycl_layer::share(*m_state, k, elements);
}

#endif

}  // namespace sucl
