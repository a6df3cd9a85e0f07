// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Events for SYCL implementations with host tasks.
//
// A host task must not wait for an operation: implementations run host tasks on few threads (DPC++
// on one), so two that wait could wait for each other across ranks. Instead the command that means
// "done" is held back by a gate, a one-byte buffer whose host accessor SuCL owns until the
// operation is done; SYCL starts the command when the accessor is destroyed. A design record has
// the alternatives: docs/design/completion.md.
#include "base/error.hpp"
#include "sycl/state.hpp"

#ifndef SYCL_IMPLEMENTATION_ACPP

#include <mutex>

namespace sucl::glue {
namespace {

using reader = ::sycl::accessor<std::byte, 1, ::sycl::access_mode::read, ::sycl::target::host_task>;
using writer =
    ::sycl::accessor<std::byte, 1, ::sycl::access_mode::read_write, ::sycl::target::host_task>;

}  // namespace

/// Holds back the command that means "done".
struct gate {
  ::sycl::buffer<std::byte, 1> lock{::sycl::range<1>(1)};
  std::optional<::sycl::host_accessor<std::byte, 1, ::sycl::access_mode::read_write>> closed;
  std::optional<error_info> failure;
  std::atomic<bool> in_use{false};

  void close() {
    if (!closed) closed.emplace(lock);
  }
  void open(const error_info* error) {
    if (error) failure = *error;
    closed.reset();
  }
};

/// The gates of one communicator, reused.
class gates {
 public:
  /// A closed gate that nobody uses.
  gate& take() {
    std::lock_guard lock(m_mutex);
    for (auto& g : m_all)
      if (!g->in_use.load(std::memory_order_acquire)) return prepare(*g);
    m_all.push_back(std::make_unique<gate>());
    return prepare(*m_all.back());
  }

 private:
  static gate& prepare(gate& g) {
    g.in_use.store(true, std::memory_order_relaxed);
    g.failure.reset();
    g.close();
    return g;
  }
  std::mutex m_mutex;
  std::vector<std::unique_ptr<gate>> m_all;
};

namespace {

// Gates belong to a process, not to a communicator: one may still be held by a command that SYCL
// has not finished when its communicator is gone.
gates& all_gates() {
  static auto* shared = new gates;  // never destroyed: SYCL's runtime may end before us
  return *shared;
}

// The command that fetches the addresses of buffers, or only waits, and then lets the operation go.
void submit_start(communicator_state& state, ::sycl::queue& queue, const core::ticket& t,
                  const std::vector<buffer_use>& buffers, const std::vector<::sycl::event>& deps) {
  queue.submit([&](::sycl::handler& h) {
    h.depends_on(deps);
    std::vector<std::pair<buffer_use, reader>> reads;
    std::vector<std::pair<buffer_use, writer>> writes;
    for (buffer_use use : buffers) {
      if (!use.writes)
        reads.emplace_back(use, reader(use.buffer, h));
      else if (use.discards)
        writes.emplace_back(use, writer(use.buffer, h, {::sycl::property::no_init{}}));
      else
        writes.emplace_back(use, writer(use.buffer, h));
    }
    h.host_task([state = state.shared_from_this(), t, reads, writes] {
      auto& n = *t.get();
      for (const auto& [use, memory] : reads)
        set_addresses(n.record, n.parts, use, const_cast<std::byte*>(&memory[0]));
      for (const auto& [use, memory] : writes)
        set_addresses(n.record, n.parts, use, &memory[0]);
      state->core().mark_ready(t);
    });
  });
}

// The command that means "done".
::sycl::event submit_done(communicator_state& state, ::sycl::queue& queue, gate& g,
                          const std::vector<buffer_use>& buffers) {
  return queue.submit([&](::sycl::handler& h) {
    for (buffer_use use : buffers) {
      // Orders what follows on the buffer behind the operation.
      if (use.writes)
        writer(use.buffer, h);
      else
        reader(use.buffer, h);
    }
    reader(g.lock, h);
    h.host_task([state = state.shared_from_this(), &g] {
      const auto failure = g.failure;
      g.in_use.store(false, std::memory_order_release);
      if (failure) throw error(*failure);
    });
  });
}

}  // namespace

bool idle(const ::sycl::queue& queue) { return queue.ext_oneapi_empty(); }

::sycl::event start(communicator_state& state, ::sycl::queue& queue, const sucl_operation& record,
                    const core::layouts& shape, const std::vector<buffer_use>& buffers,
                    const std::vector<::sycl::event>& deps) {
  const bool ready =
      buffers.empty() && complete(deps) && (!queue.is_in_order() || idle(queue));
  gate& g = all_gates().take();
  core::observer watch;
  watch.context = &g;
  watch.done = [](void* context, const error_info* failure) {
    static_cast<gate*>(context)->open(failure);
  };
  core::issue_result issued;
  try {
    issued = state.core().issue(record, shape, ready, watch);
  } catch (...) {
    g.in_use.store(false, std::memory_order_release);
    throw;
  }
  const core::ticket& t = issued.operation;
  if (issued.done) {
    g.in_use.store(false, std::memory_order_release);  // never opened: closed for the next one
    if (t.failure()) throw error(*t.failure());
    return {};
  }
  try {
    if (!ready) submit_start(state, queue, t, buffers, deps);
    return submit_done(state, queue, g, buffers);
  } catch (const ::sycl::exception& e) {
    // The operation is issued and can be neither started nor taken back.
    error_info info;
    info.code = errc::native;
    info.message = std::string("SYCL refused the command of an operation: ") + e.what();
    info.hint = "The communicator cannot be used any more";
    info.operation = core::describe(record);
    state.core().fail_all(info);
    throw error(info);
  }
}

}  // namespace sucl::glue
#endif
