// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Events for SYCL implementations with host tasks.
//
// Each asynchronous operation is one host task: it starts when SYCL has resolved the operation's
// dependencies, fetches the addresses of buffers, lets the operation go, makes progress until it is
// done, and its event is the operation's. Host tasks that wait need threads to wait in; DPC++ has
// one by default, so the library requests more before the SYCL runtime starts. docs/design/
// completion.md has what else was tried.
#include "base/error.hpp"
#include "sycl/common/resolve.hpp"
#include "sycl/completion/host_task.hpp"
#include "sycl/completion/native_command.hpp"

#ifndef SYCL_IMPLEMENTATION_ACPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

namespace sucl::sycl_layer {
namespace {

// There are enough threads for one of each communicator and its messages. Some stay free for host
// tasks of the program, and for operations that must start.
constexpr int waiting_at_once = host_task_threads - 8;

std::atomic<int> waiting_messages{0};

/// Queues whose commands have thrown failures, which SYCL passes on when the queue calls
/// throw_asynchronous().
struct failed_queues {
  std::mutex mutex;
  std::vector<::sycl::queue> queues;
  std::atomic<int> in_flight{0};  ///< commands that may still throw
};
failed_queues& failed() {
  static auto& all = *new failed_queues;  // used by threads that may outlive this library's end
  return all;
}

// DPC++ reads the variable when the first host task is submitted; what the user set stays.
[[gnu::constructor]] void ask_for_threads() {
  setenv("SYCL_QUEUE_THREAD_POOL_SIZE", std::to_string(host_task_threads).c_str(), 0);
}

}  // namespace

void begin_command() { ++failed().in_flight; }

void end_command() { --failed().in_flight; }

void fail_command(const ::sycl::queue& queue, const error_info& failure) {
  {
    auto& f = failed();
    const std::lock_guard lock(f.mutex);
    if (std::find(f.queues.begin(), f.queues.end(), queue) == f.queues.end())
      f.queues.push_back(queue);
  }
  end_command();
  throw error(failure);
}

bool hand_over_exceptions() {
  using namespace std::chrono_literals;
  auto& f = failed();
  const auto deadline = std::chrono::steady_clock::now() + 2s;
  while (f.in_flight > 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(1ms);
  if (f.in_flight > 0) return false;
  std::vector<::sycl::queue> queues;
  {
    const std::lock_guard lock(f.mutex);
    queues.swap(f.queues);
  }
  for (auto& q : queues) {
    try {
      q.wait_and_throw();
    } catch (const std::exception& e) {  // a handler's own
      return false;
    }
  }
  return true;
}

bool idle(const ::sycl::queue& queue) { return queue.ext_oneapi_empty(); }

::sycl::event event_of_done(::sycl::queue& queue) {
  if (!queue.has_property<::sycl::property::queue::enable_profiling>()) return {};
  return queue.submit([](::sycl::handler& h) { h.host_task([] {}); });
}

namespace {

core::observer awaited() {
  core::observer watch;
  watch.assisted = watch.thrown = true;
  return watch;
}

// Whether an operation is done. Throws if it has failed.
bool is_done(communicator_state& state, const core::issue_result& issued) {
  const core::ticket& t = issued.operation;
  if (issued.done && t && t.failure()) state.core().wait(t);
  return issued.done;
}

// Submits a host task that lets an operation start and waits for it.
::sycl::event await(communicator_state& state, ::sycl::queue& queue, const sucl_operation& record,
                    const core::ticket& t, const std::vector<buffer_use>& buffers,
                    const std::vector<::sycl::event>& deps) {
  // Collectives of a communicator wait one after the other, in one thread; messages, which may be
  // done in any order, side by side while there are threads.
  const bool message = core::is_point_to_point(record.kind);
  const bool free_thread = message && waiting_messages.fetch_add(1) < waiting_at_once;
  auto& chain = message ? state.last_message() : state.last_collective();
  begin_command();
  try {
    ::sycl::event done = queue.submit([&](::sycl::handler& h) {
      h.depends_on(deps);
      if (!free_thread) h.depends_on(chain);
      h.host_task(
          [state = state.shared_from_this(), t, message, queue, memory = host_buffers(buffers, h)] {
            set(*t.get(), memory);
            if (const auto wrong = overlap(*t.get(), memory, *state))
              state->core().refuse(t, *wrong);
            else
              state->core().mark_ready(t);
            state->core().assist(t);
            if (message) waiting_messages.fetch_sub(1);
            if (t.failure()) fail_command(queue, *t.failure());
            end_command();
          });
    });
    chain = done;
    return done;
  } catch (const ::sycl::exception& e) {
    if (message) waiting_messages.fetch_sub(1);
    end_command();
    refuse_command(state, record, e.what());
  }
}

}  // namespace

// The queue is needed for commands only, and a copy of it costs as much as a short wait.
std::optional<::sycl::event> start_cached(communicator_state& state,
                                          const sucl_operation& requested) {
  const auto issued = state.core().prepared().issue(requested, awaited());
  if (!issued) return std::nullopt;
  if (is_done(state, *issued)) return ::sycl::event{};
  auto queue = queue_of(state, nullptr);
  return await(state, queue, requested, issued->operation, {}, {});
}

::sycl::event start_cached(communicator_state& state, core::persistent_call& call) {
  const auto issued = state.core().prepared().issue(call, awaited());
  if (is_done(state, issued)) return {};
  auto queue = queue_of(state, nullptr);
  return await(state, queue, call.record, issued.operation, {}, {});
}

::sycl::event start(communicator_state& state, ::sycl::queue& queue, const sucl_operation& record,
                    const core::layouts& layout, const std::vector<buffer_use>& buffers,
                    const std::vector<::sycl::event>& deps, bool blocking) {
  if (auto done = start_on_stream(state, queue, record, layout, buffers, deps)) return *done;
  // Where events have timings, only the event of a command has them.
  const bool at_once = blocking || !queue.has_property<::sycl::property::queue::enable_profiling>();
  const bool ready =
      at_once && buffers.empty() && complete(deps) && (!queue.is_in_order() || idle(queue));
  const auto issued = state.core().issue(record, layout, ready, awaited(), blocking);
  if (is_done(state, issued)) return {};
  return await(state, queue, record, issued.operation, buffers, deps);
}

}  // namespace sucl::sycl_layer
#endif
