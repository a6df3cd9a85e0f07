// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Events for AdaptiveCpp, which has no host tasks (24.06): custom operations take their place.
//
// The command that means "done" waits in one of AdaptiveCpp's lanes, which holds up what it puts
// behind it there. So that nothing of ours ever stands behind such a wait, operations on USM start
// without a command: the progress thread asks their dependency events whether they are complete.
// AdaptiveCpp collects commands until somebody waits; each call therefore flushes.
#include "base/error.hpp"
#include "sycl/state.hpp"

#ifdef SYCL_IMPLEMENTATION_ACPP

#include <condition_variable>
#include <mutex>

namespace sucl::glue {
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

using reader = ::sycl::accessor<std::byte, 1, ::sycl::access_mode::read>;
using writer = ::sycl::accessor<std::byte, 1, ::sycl::access_mode::read_write>;

void flush() {
  ::hipsycl::rt::runtime_keep_alive_token runtime;
  runtime.get()->dag().flush_async();
}

/// Accessors of one command. AdaptiveCpp looks for them in the bytes of the command's function
/// object, so they have to lie in it; it warns of those that do not, as those of large groups.
struct held_buffers {
  std::optional<reader> reads[2];
  std::optional<writer> writes[2];

  held_buffers(const std::vector<buffer_use>& buffers, ::sycl::handler& h) {
    std::size_t r = 0, w = 0;
    for (buffer_use use : buffers) {
      if (use.writes && w < 2)
        writes[w++].emplace(use.buffer, h);
      else if (use.writes)
        writer(use.buffer, h);
      else if (r < 2)
        reads[r++].emplace(use.buffer, h);
      else
        reader(use.buffer, h);
    }
  }
};

// Address of a buffer on a device. Valid in a command that has an accessor to it.
void* address_on(const buffer_use& use, const ::sycl::device& where) {
  return const_cast<::sycl::buffer<std::byte, 1>&>(use.buffer).get_pointer(where);
}

::sycl::event submit_buffers(communicator_state& state, ::sycl::queue& queue, const core::ticket& t,
                             const std::shared_ptr<pending>& p,
                             const std::vector<buffer_use>& buffers,
                             const std::vector<::sycl::event>& deps) {
  const auto where = queue.get_device();
  return queue.submit([&](::sycl::handler& h) {
    h.depends_on(deps);
    h.AdaptiveCpp_enqueue_custom_operation(
        [state = state.shared_from_this(), t, p, buffers, where,
         memory = held_buffers(buffers, h)](::sycl::interop_handle&) {
          auto& n = *t.get();
          for (const auto& use : buffers)
            set_addresses(n.record, n.parts, use.place, address_on(use, where));
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

}  // namespace

bool idle(const ::sycl::queue& queue) {
  return complete(const_cast<::sycl::queue&>(queue).get_wait_list());
}

::sycl::event start(communicator_state& state, ::sycl::queue& queue, const sucl_operation& record,
                    const core::layouts& shape, const std::vector<buffer_use>& buffers,
                    const std::vector<::sycl::event>& deps) {
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
    issued = state.core().issue(record, shape, ready, watch);
  } catch (...) {
    delete static_cast<std::shared_ptr<pending>*>(watch.context);
    throw;
  }
  const core::ticket& t = issued.operation;
  if (issued.done) {
    delete static_cast<std::shared_ptr<pending>*>(watch.context);
    if (t.failure()) throw error(*t.failure());
    return {};
  }
  const auto done = buffers.empty() ? submit_wait(queue, p, p->deps)
                                    : submit_buffers(state, queue, t, p, buffers, deps);
  flush();
  return done;
}

}  // namespace sucl::glue
#endif
