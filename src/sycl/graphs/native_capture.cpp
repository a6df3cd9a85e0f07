// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sycl/graphs/native_capture.hpp"

#include "sycl/common/adaptivecpp.hpp"
#include "sycl/common/streams.hpp"

#ifdef SYCL_IMPLEMENTATION_ACPP

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/system/library.hpp"
#include "core/operation/operation.hpp"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

namespace sucl::sycl_layer {

/// Functions of the vendor, which are alike in both.
struct native_graphs {
  base::library library;
  int (*begin)(void* stream, int mode) = nullptr;
  int (*end)(void* stream, void** graph) = nullptr;
  int (*instantiate)(void** executable, void* graph, unsigned long long flags) = nullptr;
  int (*launch)(void* executable, void* stream) = nullptr;
  int (*destroy_executable)(void*) = nullptr;
  int (*destroy)(void* graph) = nullptr;
  /// The CUDA driver takes the address as a number, which is passed like a pointer.
  int (*write)(void* stream, void* address, std::uint64_t value, unsigned flags) = nullptr;

  explicit native_graphs(bool is_hip)
      : library(base::library::open(is_hip ? "libamdhip64.so" : "libcuda.so.1")) {
    const auto find = [&](auto& function, const char* cuda, const char* hip) {
      function = library.symbol_as<std::decay_t<decltype(function)>>(is_hip ? hip : cuda);
    };
    find(begin, "cuStreamBeginCapture_v2", "hipStreamBeginCapture");
    find(end, "cuStreamEndCapture", "hipStreamEndCapture");
    find(instantiate, "cuGraphInstantiateWithFlags", "hipGraphInstantiateWithFlags");
    find(launch, "cuGraphLaunch", "hipGraphLaunch");
    find(destroy_executable, "cuGraphExecDestroy", "hipGraphExecDestroy");
    find(destroy, "cuGraphDestroy", "hipGraphDestroy");
    find(write, "cuStreamWriteValue64_v2", "hipStreamWriteValue64");
  }
};

namespace {

// Other threads may call what a capture of this one must not.
constexpr int relaxed = 2;

// Null: this driver has no graphs.
const native_graphs* graphs_of(const ::sycl::device& d) {
  const auto find = [](bool is_hip) -> std::unique_ptr<native_graphs> {
    try {
      return std::make_unique<native_graphs>(is_hip);
    } catch (const error& e) {
      base::log(base::log_level::info, "sycl", "no native graphs: ", e.what());
      return nullptr;
    }
  };
  if (d.get_backend() == ::sycl::backend::hip) {
    static const auto hip = find(true);
    return hip.get();
  }
  static const auto cuda = find(false);
  return cuda.get();
}

// Commands that an in-order queue could not submit instantly, as those with accessors, would not be
// in a graph. AdaptiveCpp notes that there were some, for its own use: in a private member, which
// an explicit instantiation may name.
struct queue_state {
  friend constexpr auto member_of(queue_state);
};
template <class Tag, auto Member>
struct named_member {
  friend constexpr auto member_of(Tag) { return Member; }
};
template struct named_member<queue_state, &::sycl::queue::_impl>;

template <class State>
concept notes_collected = requires(State& s) { s.has_non_instant_operations.exchange(false); };

constexpr bool knows_collected = notes_collected<
    std::remove_reference_t<decltype(*(std::declval<::sycl::queue&>().*member_of(queue_state{})))>>;

// Whether the queue has had such commands since the last call.
template <class Queue = ::sycl::queue>
bool has_collected(Queue& queue) {
  if constexpr (knows_collected)
    return (queue.*member_of(queue_state{}))->has_non_instant_operations.exchange(false);
  else
    return true;
}

/// Takes back what AdaptiveCpp reports of commands that a capture does not allow: they run again.
class reports {
 public:
  reports() : m_before(all().num_errors()) {}
  bool any() const { return all().num_errors() > m_before; }
  void take_back() const {
    if (!any()) return;
    std::vector<::hipsycl::rt::result> kept;
    all().pop_each_error([&](const ::hipsycl::rt::result& r) {
      if (kept.size() < m_before) kept.push_back(r);
    });
    for (const auto& r : kept) all().add(r);
  }

 private:
  static ::hipsycl::rt::async_error_list& all() { return ::hipsycl::rt::application::errors(); }
  std::size_t m_before;
};

// In this thread, before it returns: the library submits instantly.
template <class Function>
::sycl::event on_stream(::sycl::queue& queue, const std::vector<::sycl::event>& deps,
                        const Function& f) {
  return queue.submit([&](::sycl::handler& h) {
    h.depends_on(deps);
    h.AdaptiveCpp_enqueue_custom_operation(
        [&f](::sycl::interop_handle& handle) { f(stream_of(handle)); });
  });
}

}  // namespace

capture::capture(const ::sycl::queue& queue)
    : m_native(*graphs_of(queue.get_device())), m_queue(queue) {
  on_stream(m_queue, {}, [this](void* stream) { m_stream = stream; });
}

bool capture::begin() { return m_native.begin(m_stream, relaxed) == 0; }

// A capture that has failed must be ended too.
bool capture::end() {
  void* captured = nullptr;
  if (m_native.end(m_stream, &captured) != 0 || !captured) return false;
  void* executable = nullptr;
  const int code = m_native.instantiate(&executable, captured, 0);
  m_native.destroy(captured);
  if (code != 0) return false;
  m_graph = {executable, m_native.destroy_executable};
  return true;
}

bool capture::run(const std::function<void()>& calls) {
  const reports before;
  flush_and_enqueue();
  has_collected(m_queue);  // by other commands of the program
  const capture_gate::capture alone;
  if (!begin()) return false;
  bool good = true;
  std::exception_ptr thrown;
  current_capture() = this;
  try {
    calls();
  } catch (const not_capturable&) {
    good = false;
  } catch (...) {
    thrown = std::current_exception();
  }
  current_capture() = nullptr;
  m_events.clear();
  good = end() && good && !has_collected(m_queue) && !before.any();
  for (member& m : m_members)
    if (const auto state = m.state.lock()) state->core().streams().end_capture(m.operations);
  before.take_back();
  if (thrown) std::rethrow_exception(thrown);
  return good;
}

capture::member& capture::member_of(communicator_state& state) {
  for (member& m : m_members)
    if (m.state.lock().get() == &state) return m;
  member& m = m_members.emplace_back();
  m.state = state.weak_from_this();
  m.operations.changes = state.core().changes();
  return m;
}

// On an in-order queue its own commands need no events.
bool capture::is_own(const ::sycl::event& e) const {
  return std::find(m_events.begin(), m_events.end(), e) != m_events.end();
}

::sycl::event capture::take(communicator_state& state, ::sycl::queue& queue,
                            const sucl_operation& record, const core::layouts& layout,
                            const std::vector<buffer_use>& buffers,
                            const std::vector<::sycl::event>& deps) {
  const bool ordered =
      queue == m_queue && buffers.empty() && state.on_device() && state.on_device()->streams() &&
      std::all_of(deps.begin(), deps.end(), [this](const auto& e) { return is_own(e); });
  if (!ordered) throw not_capturable{};
  core::captured_operations& into = member_of(state).operations;
  bool taken = false;
  ::sycl::event done;
  if (state.core().streams().launches(record)) {
    launch_target target{queue, {}, buffers, {}};
    taken = state.core().streams().capture(into, record, layout, &target, false);
    done = std::move(target.done);
  } else {
    std::exception_ptr failed;
    done = on_stream(queue, {}, [&](void* stream) {
      try {
        taken = state.core().streams().capture(into, record, layout, stream, true);
      } catch (...) {
        failed = std::current_exception();
      }
    });
    if (failed) std::rethrow_exception(failed);
  }
  if (!taken) throw not_capturable{};
  m_events.push_back(done);
  return done;
}

bool capture::is_current() const {
  return std::all_of(m_members.begin(), m_members.end(), [](const member& m) {
    const auto state = m.state.lock();
    return state && state->core().alive() && state->core().changes() == m.operations.changes;
  });
}

std::optional<::sycl::event> capture::launch() {
  std::vector<std::shared_ptr<communicator_state>> states;
  for (const member& m : m_members) {
    states.push_back(m.state.lock());
    if (!states.back() || !states.back()->core().streams().may_replay(m.operations))
      return std::nullopt;
  }
  std::vector<core::graph_base> bases;
  std::vector<::sycl::event> deps;
  for (member& m : m_members) {
    const auto& state = states[bases.size()];
    bases.push_back(state->core().streams().replay(m.operations).value_or(core::graph_base{}));
    if (auto before = state->on_device()->streams()->before(m_queue))
      deps.push_back(std::move(*before));
  }
  std::vector<std::vector<::sycl::event>> marks;
  for (const auto& state : states)
    marks.push_back(state->on_device()->streams()->marks(m_queue, deps));
  int code = 0;
  const auto done = on_stream(m_queue, deps, [&](void* stream) {
    for (const core::graph_base& b : bases)
      for (std::size_t i = 0; b.memory && i < std::size(b.values) && code == 0; ++i)
        code = m_native.write(stream, static_cast<std::uint64_t*>(b.memory) + i, b.values[i], 0);
    if (code == 0) code = m_native.launch(m_graph.get(), stream);
  });
  for (std::size_t i = 0; i < states.size(); ++i)
    states[i]->on_device()->streams()->add(done, m_queue, false, std::move(marks[i]));
  if (code == 0) return done;
  error_info info;
  info.code = errc::native;
  info.operation = "replay";
  info.message = "the device's driver does not launch the graph: code " + std::to_string(code);
  info.hint = "Look for an earlier failure of the program's own kernels";
  for (const auto& state : states) state->core().fail_everywhere(info);
  throw error(std::move(info));
}

native_replays::native_replays(communicator_state& state, const ::sycl::queue& queue) {
  const bool may = state.on_device() && state.on_device()->streams() && queue.is_in_order() &&
                   program_submits_instantly() && graphs_of(queue.get_device());
  if (may && knows_collected) m_queue = queue;
}

void native_replays::call(const std::function<void()>& calls) {
  const bool checks_recording = m_queue && !m_called;
  if (checks_recording) {
    flush_and_enqueue();
    has_collected(*m_queue);
  }
  calls();
  if (checks_recording && has_collected(*m_queue)) m_queue.reset();
  m_called = true;
}

std::optional<::sycl::event> native_replays::replay(const std::function<void()>& calls) {
  if (m_capture && !m_capture->is_current()) {
    m_capture.reset();
    m_called = false;  // buffers may be needed that are not there yet
  }
  if (m_queue && m_called && !m_capture) {
    auto captured = std::make_unique<capture>(*m_queue);
    if (captured->run(calls)) {
      m_capture = std::move(captured);
    } else {
      base::log(base::log_level::info, "sycl", "replays call the function: it is no graph");
      m_queue.reset();
    }
  }
  if (m_capture)
    if (auto done = m_capture->launch()) return done;
  call(calls);
  return std::nullopt;
}

}  // namespace sucl::sycl_layer
#endif
