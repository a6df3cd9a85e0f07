// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// One native command puts the backend's work on the stream while it is being enqueued. No thread
// waits for anything.
#include "sycl/completion/native_command.hpp"

#include "base/error.hpp"
#include "sycl/buffers/held_buffers.hpp"
#include "sycl/buffers/packing.hpp"
#include "sycl/buffers/resident.hpp"
#include "sycl/common/adaptivecpp.hpp"
#include "sycl/rtc/kernel_launcher.hpp"

#include <atomic>
#include <mutex>
#include <utility>

namespace sucl::sycl_layer {
namespace {

/// A command that is going to post an operation. The runtime may keep a command for long, and free
/// it in a thread of its own, so the operation and its communicator are let go as soon as it is
/// posted.
struct deferred_post {
  std::shared_ptr<communicator_state> state;
  core::ticket operation;

  void post(void* stream) {
    state->core().streams().post(operation, stream);
    operation = {};
    retire(std::move(state));
  }
};

#ifdef SYCL_IMPLEMENTATION_ACPP

::sycl::event submit(::sycl::queue& queue, const std::shared_ptr<deferred_post>& j,
                     const std::vector<buffer_use>& buffers,
                     const std::vector<::sycl::event>& deps) {
  // The library is built with instant submission: on an in-order queue the command runs in this
  // thread. It must not overtake what the program, built without, has AdaptiveCpp collect.
  if (queue.is_in_order() && !program_submits_instantly()) flush_and_enqueue();
  submitter to = j->state->on_device()->streams()->submitter_to(queue);
  auto done = to.submit([&](::sycl::handler& h) {
    h.depends_on(deps);
    if (buffers.empty())
      h.AdaptiveCpp_enqueue_custom_operation(
          [j](::sycl::interop_handle& handle) { j->post(stream_of(handle)); });
    else
      h.AdaptiveCpp_enqueue_custom_operation(
          [j, memory = buffer_memory(buffers, queue.get_device()),
           held = held_buffers(buffers, h)](::sycl::interop_handle& handle) {
            memory.set(*j->operation.get());
            j->post(stream_of(handle));
          });
  });
  if (!queue.is_in_order()) flush();
  return done;
}

#else

using device_buffers = held_buffers<::sycl::target::device>;

template <::sycl::backend Backend>
void post(deferred_post& j, const device_buffers& memory, const ::sycl::interop_handle& handle) {
  memory.set(*j.operation.get(), [&](const auto& access) {
    return reinterpret_cast<void*>(handle.template get_native_mem<Backend>(access));
  });
  j.post(reinterpret_cast<void*>(handle.get_native_queue<Backend>()));
}

// A native command on an out-of-order queue does not wait for what it depends on. A barrier does,
// and what comes after the barrier waits for it. It knows no buffers, so their last commands are
// met by a host task that does nothing.
void wait_on_device(::sycl::queue& queue, const std::vector<buffer_use>& buffers,
                    std::vector<::sycl::event> before) {
  if (!buffers.empty())
    before.push_back(queue.submit([&](::sycl::handler& h) {
      h.host_task([memory = device_buffers(buffers, h)](const ::sycl::interop_handle&) {});
    }));
  if (before.empty()) return;
  queue.submit([&](::sycl::handler& h) {
    h.depends_on(before);  // or the call would wait for what is held up by a host task
    h.ext_oneapi_barrier(before);
  });
}

template <class Handler = ::sycl::handler>
::sycl::event submit(::sycl::queue& queue, const std::shared_ptr<deferred_post>& j,
                     const std::vector<buffer_use>& buffers,
                     const std::vector<::sycl::event>& deps) {
  if (!queue.is_in_order()) wait_on_device(queue, buffers, deps);
  return queue.submit([&](Handler& h) {
    h.depends_on(deps);
    if constexpr (with_native_commands<Handler>) {
      h.ext_codeplay_enqueue_native_command(
          [j, memory = device_buffers(buffers, h)](const ::sycl::interop_handle& handle) {
            if (handle.get_backend() == ::sycl::backend::ext_oneapi_hip)
              post<::sycl::backend::ext_oneapi_hip>(*j, memory, handle);
            else
              post<::sycl::backend::ext_oneapi_cuda>(*j, memory, handle);
          });
    }
  });
}

#endif

struct retired_states {
  std::mutex mutex;
  std::atomic<bool> any{false};
  std::vector<std::shared_ptr<communicator_state>> states;
};
retired_states& retired() {
  static auto& all = *new retired_states;  // used by threads that may outlive this library's end
  return all;
}

}  // namespace

#ifdef SYCL_IMPLEMENTATION_ACPP
namespace {
// Set before main, read after it.
bool all_instant = true;
}  // namespace

bool note_submission(bool instant) {
  all_instant = all_instant && instant;
  return all_instant;
}

bool program_submits_instantly() { return all_instant; }
#endif

void retire(std::shared_ptr<communicator_state> state) {
  if (state.use_count() > 2) return;  // two: the program may be letting go of the other one now
  auto& r = retired();
  const std::lock_guard lock(r.mutex);
  r.states.push_back(std::move(state));
  r.any.store(true, std::memory_order_release);
}

void collect_retired() {
  auto& r = retired();
  if (!r.any.load(std::memory_order_acquire)) return;
  std::vector<std::shared_ptr<communicator_state>> old;
  {
    const std::lock_guard lock(r.mutex);
    old.swap(r.states);
    r.any.store(false, std::memory_order_relaxed);
  }
}

namespace {

// With accessors to `buffers`, or, if there are none, on the memory that the record names.
std::optional<::sycl::event> start_dense(communicator_state& state, ::sycl::queue& queue,
                                         const sucl_operation& record, const core::layouts& layout,
                                         const std::vector<buffer_use>& buffers,
                                         const std::vector<::sycl::event>& deps) {
  if (!buffers.empty() && state.core().streams().launches_by_address(record)) return std::nullopt;
  auto issued = state.core().streams().issue(record, layout);
  if (!issued) return std::nullopt;
  auto& tracker = *state.on_device()->streams();
  try {
    // One after the other: the device works on the operations of a communicator in one order.
    std::vector<::sycl::event> all = deps;
    if (auto before = tracker.before(queue)) all.push_back(std::move(*before));
    auto before = tracker.marks(queue, all);
    ::sycl::event done;
    if (core::stream_path::launches(*issued)) {
      launch_target target{queue, std::move(all), buffers, {}};
      state.core().streams().post(*issued, &target);
      done = std::move(target.done);
      if (issued->done() && issued->failure()) {
        const auto failure = *issued->failure();
        state.core().fail_everywhere(failure);
        throw error(failure);
      }
    } else {
      auto j = std::make_shared<deferred_post>(
          deferred_post{state.shared_from_this(), std::move(*issued)});
      done = submit(queue, j, buffers, all);
    }
    tracker.add(done, queue, !buffers.empty(), std::move(before));
    return done;
  } catch (const ::sycl::exception& e) {
    refuse_command(state, record, e.what());
  }
}

}  // namespace

std::optional<::sycl::event> start_on_stream(communicator_state& state, ::sycl::queue& queue,
                                             const sucl_operation& record,
                                             const core::layouts& layout,
                                             const std::vector<buffer_use>& buffers,
                                             const std::vector<::sycl::event>& deps) {
  auto* device = state.on_device();
  if (!device || !device->streams()) return std::nullopt;
  collect_retired();
  if (auto done = start_packed(state, queue, record, layout, buffers, deps)) return done;
  const auto resident = resident_buffers::find(queue, buffers, layout);
  if (!resident) return start_dense(state, queue, record, layout, buffers, deps);
  sucl_operation addressed = record;
  std::vector<sucl_operation> parts(record.parts, record.parts + record.part_count);
  addressed.parts = parts.data();
  resident->set(addressed, parts);
  auto done = start_dense(state, queue, addressed, layout, {}, deps);
  if (done) resident->note_use();
  return done;
}

}  // namespace sucl::sycl_layer
