// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sycl/gated.hpp"

#include "sycl/adaptivecpp.hpp"
#include "sycl/gate.hpp"

#ifdef SYCL_IMPLEMENTATION_ACPP

#include <atomic>

namespace sucl::glue {
namespace {

using events = std::vector<::sycl::event>;

/// What an operation in flight and its commands share.
struct flight {
  gates* all = nullptr;
  gates::word word;
  std::atomic<bool> submitted{false};  ///< `first` is complete as a list
  events first;                        ///< what it waits for
};

// The commands of a queue that the operation comes after, besides `deps`.
void add_order(::sycl::queue& queue, events& deps) {
  if (!queue.is_in_order()) return;
  for (auto& e : queue.get_wait_list()) deps.push_back(e);
}

// A command that comes after everything that uses the buffers, and takes their addresses.
::sycl::event fetch(::sycl::queue& queue, const core::ticket& t,
                    const std::vector<buffer_use>& buffers, const events& deps) {
  return queue.submit([&](::sycl::handler& h) {
    h.depends_on(deps);
    h.AdaptiveCpp_enqueue_custom_operation(
        [t, memory = buffer_memory(buffers, queue.get_device()),
         held = held_buffers(buffers, h)](::sycl::interop_handle&) { memory.set(*t.get()); });
  });
}

// A command that ends with the gate: what uses the buffers or the queue later comes after it.
::sycl::event release(::sycl::queue& queue, const std::vector<buffer_use>& buffers,
                      const ::sycl::event& gate) {
  return queue.submit([&](::sycl::handler& h) {
    h.depends_on(gate);
    h.AdaptiveCpp_enqueue_custom_operation(
        [held = held_buffers(buffers, h)](::sycl::interop_handle&) {});
  });
}

core::observer observer_of(const std::shared_ptr<flight>& f) {
  core::observer watch;
  watch.context = new std::shared_ptr<flight>(f);
  watch.is_ready = [](void* context) {
    const auto& f = **static_cast<std::shared_ptr<flight>*>(context);
    return f.submitted.load(std::memory_order_acquire) && complete(f.first);
  };
  watch.done = [](void* context, const error_info*) {
    const std::unique_ptr<std::shared_ptr<flight>> owner(
        static_cast<std::shared_ptr<flight>*>(context));
    (*owner)->all->open((*owner)->word);
  };
  return watch;
}

}  // namespace

::sycl::event start_gated(communicator_state& state, ::sycl::queue& queue,
                          const sucl_operation& record, const core::layouts& shape,
                          const std::vector<buffer_use>& buffers, const events& deps) {
  auto f = std::make_shared<flight>();
  f->all = state.on_device()->gate();
  f->first = deps;
  if (buffers.empty()) {
    add_order(queue, f->first);
    flush();
    f->submitted = true;
  }
  f->word = f->all->close();
  const auto watch = observer_of(f);
  core::issue_result issued;
  try {
    issued = state.core().issue(record, shape, false, watch);
  } catch (...) {
    watch.done(watch.context, nullptr);
    throw;
  }
  if (!buffers.empty()) {
    f->first = {fetch(queue, issued.operation, buffers, deps)};
    flush();
    f->submitted.store(true, std::memory_order_release);
    state.core().wake();
  }
  auto done = f->all->wait(f->word, core::is_point_to_point(record.kind));
  if (!buffers.empty() || queue.is_in_order()) {
    done = release(queue, buffers, done);
    flush();
  }
  return done;
}

}  // namespace sucl::glue
#endif
