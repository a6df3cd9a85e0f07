// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// One mechanism for queues that record and for nodes that are added: an operation is a host task,
// which issues it and makes progress until it is done, as that of a call does. Operations of a
// communicator follow one another in a graph. Messages on an out-of-order queue, which may be done
// in any order, have a host task more: the first one issues, in order, and the second one waits.
#include "sycl/graphs/record.hpp"

#include "base/error.hpp"
#include "sycl/graphs/replay.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <variant>

#ifdef SYCL_EXT_ONEAPI_GRAPH
#include <sycl/ext/oneapi/weak_object.hpp>
#endif

namespace sucl::sycl_layer {

#ifdef SYCL_EXT_ONEAPI_GRAPH
namespace {

// Messages of a communicator in one graph that wait side by side, each in a thread.
constexpr std::size_t messages_at_once = 8;

/// A node: by the event that recording it has given, or itself.
using point = std::variant<::sycl::event, graph_node>;
using command = std::function<void(::sycl::handler&)>;

}  // namespace

/// What one communicator has put into one graph.
struct recording {
  explicit recording(const modifiable_graph& of) : id(of.get_id()), owner(of) {}

  std::size_t id;
  ::sycl::ext::oneapi::weak_object<modifiable_graph> owner;
  std::shared_ptr<replay_order> order = std::make_shared<replay_order>();
  std::uint32_t operations = 0;
  std::optional<point> last;   ///< which issues the last operation
  std::deque<point> messages;  ///< those that wait side by side
  /// The steps of the last operation, if others may join it in its host task; else null.
  std::shared_ptr<steps> open;
  std::size_t nodes = 0;  ///< of the graph, by then
};

/// What a communicator has put into graphs that may still grow.
class recordings {
 public:
  std::mutex mutex;  ///< held while an operation is put into a graph

  recording& of(const modifiable_graph& g) {
    std::erase_if(m_all, [](const recording& r) { return r.owner.expired(); });
    const auto known = std::find_if(m_all.begin(), m_all.end(),
                                    [&](const recording& r) { return r.id == g.get_id(); });
    return known != m_all.end() ? *known : m_all.emplace_back(g);
  }

 private:
  std::deque<recording> m_all;
};

namespace {

/// Puts a command into a graph, behind others of it.
using put_function = std::function<point(const command&, const std::vector<point>&)>;

void refuse(communicator_state& state, const sucl_operation& record, errc code, std::string message,
            const char* hint) {
  error_info info;
  info.code = code;
  info.message = std::move(message);
  info.hint = hint;
  refuse_call(state, record, std::move(info));
}

void check_can_be_replayed(communicator_state& state, const resolved& call) {
  if (state.on_device() && state.on_device()->streams())
    refuse(state, call.record, errc::unsupported,
           "the device has native streams, whose operations cannot be nodes of a command graph yet",
           "Call it before begin_recording() or after end_recording(), on every rank");
  if (!state.process()->has_own_thread())
    refuse(state, call.record, errc::unavailable,
           "MPI was initialised without MPI_THREAD_MULTIPLE, and the operations of a graph are "
           "issued by threads of the SYCL runtime",
           "Call MPI_Init_thread with MPI_THREAD_MULTIPLE");
}

point put_both(recording& r, const std::shared_ptr<recorded_operation>& o, const resolved& call,
               std::vector<point> after, const put_function& put) {
  if (r.last) after.push_back(*r.last);
  auto all = std::make_shared<steps>(1, o);
  r.last = put(
      [&](::sycl::handler& h) {
        h.host_task([all, memory = host_buffers(call.buffers, h)] { run(*all, memory); });
      },
      after);
  r.open = std::move(all);
  return *r.last;
}

// Whether an operation may be a step of the host task of the one before: nothing was recorded in
// between, and nothing takes the graph away before its end.
bool may_join(const recording& r, const modifiable_graph& g, const resolved& call,
              const std::vector<point>& after, const ::sycl::queue& queue) {
  const auto is_last = [&](const point& p) {
    return std::get<::sycl::event>(p) == std::get<::sycl::event>(*r.last);
  };
  return in_recording_scope() && queue.is_in_order() && call.buffers.empty() && r.open &&
         r.open->front()->queue == queue && std::all_of(after.begin(), after.end(), is_last) &&
         g.get_nodes().size() == r.nodes;
}

// What comes behind a buffer of the operation comes behind the second one.
point put_in_parallel(recording& r, const std::shared_ptr<recorded_operation>& o,
                      const resolved& call, std::vector<point> after, const put_function& put) {
  if (r.last) after.push_back(*r.last);
  r.last = put(
      [&](::sycl::handler& h) {
        h.host_task([o, memory = host_buffers(call.buffers, h)] { issue(*o, memory); });
      },
      after);
  after = {*r.last};
  if (r.messages.size() == messages_at_once) {
    after.push_back(r.messages.front());
    r.messages.pop_front();
  }
  r.messages.push_back(put(
      [&](::sycl::handler& h) {
        h.host_task([o, memory = host_buffers(call.buffers, h)] { await(*o); });
      },
      after));
  return r.messages.back();
}

point put_operation(communicator_state& state, const ::sycl::queue& queue,
                    const modifiable_graph& g, bool in_parallel, const resolved& call,
                    const std::vector<point>& after, const put_function& put) {
  check_can_be_replayed(state, call);
  static std::mutex making;
  {
    const std::lock_guard lock(making);
    if (!state.recorded()) state.recorded() = std::make_shared<recordings>();
  }
  recordings& all = *state.recorded();
  const std::lock_guard lock(all.mutex);
  recording& r = all.of(g);
  const auto o = std::make_shared<recorded_operation>(state, call, queue);
  o->order = r.order;
  o->position = r.operations;
  const bool split = in_parallel && core::is_point_to_point(call.record.kind);
  std::optional<point> made;
  try {
    if (may_join(r, g, call, after, queue)) {
      r.open->push_back(o);
      made = r.last;
    } else {
      r.open = nullptr;
      made = split ? put_in_parallel(r, o, call, after, put) : put_both(r, o, call, after, put);
      if (in_recording_scope()) r.nodes = g.get_nodes().size();
    }
  } catch (const ::sycl::exception& e) {
    refuse(state, call.record, errc::unsupported,
           std::string("SYCL does not take the operation into the graph: ") + e.what(),
           "See the rules of docs/how-to/graphs.md");
  }
  ++r.operations;
  const sucl_operation recorded = state.core().record(o->record);
  o->record.sequence = recorded.sequence;
  o->record.tag = recorded.tag;
  o->is_recorded = true;
  return *made;
}

}  // namespace

::sycl::event record(communicator_state& state, ::sycl::queue& queue, const resolved& call,
                     const std::vector<::sycl::event>& deps) {
  if (!std::all_of(deps.begin(), deps.end(), is_of_graph))
    refuse(state, call.record, errc::unsupported,
           "the queue is recording a command graph, and an event to wait for is not of that graph",
           "Wait for the event before begin_recording(), or pass it where the graph is replayed, "
           "as in queue.ext_oneapi_graph(graph, event)");
  // By SYCL's rule a command that waits for one of a graph makes its queue record that graph.
  if (!is_recording(queue, {})) queue.ext_oneapi_submit_barrier(deps);
  const put_function put = [&](const command& c, const std::vector<point>& after) -> point {
    if (std::any_of(after.begin(), after.end(),
                    [](const point& p) { return std::holds_alternative<graph_node>(p); }))
      refuse(state, call.record, errc::unsupported,
             "the graph has operations of this communicator that were added as nodes, behind which "
             "a queue cannot record",
             "Record all operations of a communicator in a graph, or add all of them");
    return queue.submit([&](::sycl::handler& h) {
      for (const point& p : after) h.depends_on(std::get<::sycl::event>(p));
      c(h);
    });
  };
  const std::vector<point> after(deps.begin(), deps.end());
  return std::get<::sycl::event>(put_operation(state, queue, queue.ext_oneapi_get_graph(),
                                               !queue.is_in_order(), call, after, put));
}

graph_node add(communicator_state& state, modifiable_graph graph, const resolved& call,
               const std::vector<graph_node>& after, const std::vector<::sycl::event>& deps) {
  const auto node_of = [](const point& p) {
    const auto* e = std::get_if<::sycl::event>(&p);
    return e ? graph_node::get_node_from_event(*e) : std::get<graph_node>(p);
  };
  const put_function put = [&](const command& c, const std::vector<point>& behind) -> point {
    graph_node made = graph.add(c);
    for (const point& p : behind) {
      graph_node before = node_of(p);
      graph.make_edge(before, made);
    }
    return made;
  };
  std::vector<point> behind(after.begin(), after.end());
  behind.insert(behind.end(), deps.begin(), deps.end());
  const auto queue = queue_of(state, call.queue);
  return std::get<graph_node>(put_operation(state, queue, graph, true, call, behind, put));
}

#else

class recordings {};

::sycl::event record(communicator_state&, ::sycl::queue&, const resolved&,
                     const std::vector<::sycl::event>&) {
  return {};
}

#endif

}  // namespace sucl::sycl_layer
