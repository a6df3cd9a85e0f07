// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Events for AdaptiveCpp, which has custom operations instead of host tasks (24.06).
//
// The command that means "done" waits in one of AdaptiveCpp's lanes, which holds up what it puts
// behind it there. So that nothing of ours ever stands behind such a wait, operations on USM start
// without a command: the progress thread polls their dependency events.
// AdaptiveCpp collects commands until a thread waits; each call therefore flushes.
#include "base/error.hpp"
#include "sycl/common/adaptivecpp.hpp"
#include "sycl/common/recording.hpp"
#include "sycl/common/state.hpp"
#include "sycl/completion/gated.hpp"
#include "sycl/completion/native_command.hpp"

#ifdef SYCL_IMPLEMENTATION_ACPP

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace sucl::sycl_layer {
namespace {

/// What an operation in flight and its command share.
struct pending {
  std::vector<::sycl::event> deps;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;

  void finish() {
    {
      std::lock_guard lock(mutex);
      done = true;
    }
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return done; });
  }
};

::sycl::event submit_buffers(communicator_state& state, ::sycl::queue& queue, const core::ticket& t,
                             const std::shared_ptr<pending>& p,
                             const std::vector<buffer_use>& buffers,
                             const std::vector<::sycl::event>& deps) {
  return queue.submit([&](::sycl::handler& h) {
    h.depends_on(deps);
    h.AdaptiveCpp_enqueue_custom_operation(
        [state = state.shared_from_this(), t, p,
         memory = buffer_memory(buffers, queue.get_device()),
         held = held_buffers(buffers, h)](::sycl::interop_handle&) {
          memory.set(*t.get());
          state->core().mark_ready(t);
          p->wait();
        });
  });
}

::sycl::event submit_wait(::sycl::queue& queue, const std::shared_ptr<pending>& p,
                          const std::vector<::sycl::event>& deps) {
  return queue.submit([&](::sycl::handler& h) {
    h.depends_on(deps);
    h.AdaptiveCpp_enqueue_custom_operation([p](::sycl::interop_handle&) { p->wait(); });
  });
}

bool uses_host_memory(const sucl_operation& o) {
  const auto is_of_host = [](const void* address, sucl_memory m) {
    return address && (m == SUCL_MEMORY_SYSTEM || m == SUCL_MEMORY_HOST);
  };
  return is_of_host(o.send, o.send_memory) || is_of_host(o.recv, o.recv_memory) ||
         std::any_of(o.parts, o.parts + o.part_count, uses_host_memory);
}

// Each rank's command waits in the one lane of the process, with what the other ranks need to come
// there behind it.
void refuse_shared_lane(communicator_state& state, const ::sycl::queue& queue,
                        const sucl_operation& record) {
  if (!state.shares_process() || !queue.get_device().is_cpu()) return;
  error_info info;
  info.code = errc::unsupported;
  info.operation = core::kind_name(record.kind);
  info.rank = state.core().rank();
  info.message =
      "this process has several ranks of the communicator, and AdaptiveCpp's CPU device lets the "
      "commands of one wait for those of the others for ever";
  info.hint =
      "Use the blocking form in a thread for each rank (sucl::each_rank), or a process for "
      "each rank";
  state.core().refuse(record, info);
  throw error(std::move(info));
}

}  // namespace

::sycl::event event_of_done(::sycl::queue& queue) {
  if (!queue.has_property<::sycl::property::queue::enable_profiling>()) return {};
  auto done = queue.submit([](::sycl::handler& h) {
    h.AdaptiveCpp_enqueue_custom_operation([](::sycl::interop_handle&) {});
  });
  flush();
  return done;
}

void wait_for_host_copies(const ::sycl::queue& queue, const std::vector<::sycl::event>& deps) {
  // What is submitted instantly to an in-order queue is on its stream, copies as all else.
  const bool ordered = queue.is_in_order() && !program_submits_instantly();
  if (!ordered && deps.empty()) return;
  flush_and_enqueue();
  const auto device = queue.get_device().AdaptiveCpp_device_id();
  ::hipsycl::rt::runtime_keep_alive_token runtime;
  for (const auto& node : runtime.get()->dag().get_group(queue.AdaptiveCpp_hash_code())) {
    const auto* executor = node->get_assigned_executor();
    if (!executor || executor->can_execute_on_device(device)) continue;
    const ::sycl::event copy(node);
    if (ordered || std::find(deps.begin(), deps.end(), copy) != deps.end()) node->wait();
  }
}

// Commands throw nothing here.
bool hand_over_exceptions() { return false; }

bool idle(const ::sycl::queue& queue) {
  return complete(const_cast<::sycl::queue&>(queue).get_wait_list());
}

::sycl::event start(communicator_state& state, ::sycl::queue& queue, const sucl_operation& record,
                    const core::layouts& layout, const std::vector<buffer_use>& buffers,
                    const std::vector<::sycl::event>& deps, bool blocking) {
  if (auto* c = current_capture()) return c->take(state, queue, record, layout, buffers, deps);
  if (queue.is_in_order() && state.on_device() && state.on_device()->gate() &&
      uses_host_memory(record))
    wait_for_host_copies(queue, {});
  if (auto done = start_on_stream(state, queue, record, layout, buffers, deps)) return *done;
  if (state.on_device() && state.on_device()->gate())
    return start_gated(state, queue, record, layout, buffers, deps, blocking);
  if (!blocking) refuse_shared_lane(state, queue, record);
  auto p = std::make_shared<pending>();
  p->deps = deps;
  if (queue.is_in_order())
    for (auto& e : queue.get_wait_list()) p->deps.push_back(e);
  if (!p->deps.empty()) flush();
  const bool ready = buffers.empty() && complete(p->deps);
  core::observer watch;
  watch.context = new std::shared_ptr<pending>(p);
  if (buffers.empty() && !ready)
    watch.is_ready = [](void* context) {
      return complete((*static_cast<std::shared_ptr<pending>*>(context))->deps);
    };
  watch.done = [](void* context, const error_info*) {
    auto* owner = static_cast<std::shared_ptr<pending>*>(context);
    (*owner)->finish();
    delete owner;
  };
  core::issue_result issued;
  try {
    issued = state.core().issue(record, layout, ready, watch);
  } catch (...) {
    delete static_cast<std::shared_ptr<pending>*>(watch.context);
    throw;
  }
  const core::ticket& t = issued.operation;
  if (issued.done) {
    delete static_cast<std::shared_ptr<pending>*>(watch.context);
    if (t.failure()) state.core().wait(t);  // throws it
    return blocking ? ::sycl::event{} : event_of_done(queue);
  }
  const auto done = buffers.empty() ? submit_wait(queue, p, p->deps)
                                    : submit_buffers(state, queue, t, p, buffers, deps);
  flush();
  return done;
}

}  // namespace sucl::sycl_layer
#endif
