// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sycl/completion/gated.hpp"

#include "sycl/common/adaptivecpp.hpp"
#include "sycl/completion/gate.hpp"

#ifdef SYCL_IMPLEMENTATION_ACPP

#include <optional>

namespace sucl::sycl_layer {
namespace {

using events = std::vector<::sycl::event>;

/// What an operation in flight and its commands share.
struct flight {
  gates* all = nullptr;
  std::optional<message_queues::choice> chosen;  ///< queues of the gates; else the program's
  gates::word arrived;  ///< set by the device: what the operation waits for is done
  gates::word done;     ///< set by the host: the operation is
  // The bounce buffer for a message's device memory, where that is not within reach of the backend
  // that executes the message. While a gate is closed the driver may make every call wait, as when
  // the program copies to pageable memory behind it; so these copies are enqueued together with the
  // gates.
  gates::pooled_buffer host{};
  bool sends = false;
  bool keeps = false;  ///< parts of what is copied to the device stay as they are
  std::size_t bytes = 0;
  std::ptrdiff_t first = 0;  ///< bytes, from where the record points to what is copied
  std::byte* address = nullptr;

  void set_address(const sucl_operation& o) {
    const void* start = sends ? o.send : o.recv;
    address = static_cast<std::byte*>(const_cast<void*>(start)) + first;
  }
  void arrive(void* stream) const {
    if (host.memory && (sends || keeps)) all->copy_on(stream, host.memory, address, bytes);
    all->set_on(stream, arrived);
  }
  void leave(void* stream) const {
    if (chosen) all->wait_on(stream, arrived);  // what has failed is done before it has begun
    all->wait_on(stream, done);
    if (!host.memory || sends) return;
    all->copy_on(stream, address, host.memory, bytes);
    all->set_on(stream, host.over);
  }
};

// The runtime may keep a command longer than the communicator lives: a command that needs the
// operation has it in here, and lets it go.
using shared_ticket = std::shared_ptr<core::ticket>;

void take_bounce_buffer(communicator_state& state, const sucl_operation& o,
                        const core::layouts& layout, flight& f) {
  const bool sends = o.kind == SUCL_KIND_SEND;
  const auto memory = sends ? o.send_memory : o.recv_memory;
  if (o.count == 0 || memory != SUCL_MEMORY_DEVICE || !state.core().streams().stages(o)) return;
  const auto& block = sends ? layout.send : layout.recv;
  const std::uint64_t first = block ? block->array_index(0) : 0;
  const std::uint64_t last = block ? block->array_index(o.count - 1) : o.count - 1;
  f.sends = sends;
  f.keeps = block.has_value();
  f.first = static_cast<std::ptrdiff_t>(first * o.element_size);
  f.bytes = (last - first + 1) * o.element_size;
  f.host = f.all->take_buffer(f.bytes);
  f.set_address(o);
}

// The command that comes before the message and takes the addresses of its buffers.
void submit_before(::sycl::queue& queue, const std::shared_ptr<flight>& f,
                   const shared_ticket& operation, const std::vector<buffer_use>& buffers,
                   const events& deps) {
  queue.submit([&](::sycl::handler& h) {
    h.depends_on(deps);
    if (buffers.empty())
      h.AdaptiveCpp_enqueue_custom_operation(
          [f](::sycl::interop_handle& handle) { f->arrive(stream_of(handle)); });
    else
      h.AdaptiveCpp_enqueue_custom_operation(
          [f, operation, memory = buffer_memory(buffers, queue.get_device()),
           held = held_buffers(buffers, h)](::sycl::interop_handle& handle) {
            memory.set(*operation->get());
            f->set_address(operation->get()->record);
            *operation = {};
            f->arrive(stream_of(handle));
          });
  });
  flush();
}

// The command that comes after it.
::sycl::event submit_after(::sycl::queue& queue, const std::shared_ptr<flight>& f,
                           const std::vector<buffer_use>& buffers) {
  auto done = queue.submit([&](::sycl::handler& h) {
    if (buffers.empty())
      h.AdaptiveCpp_enqueue_custom_operation(
          [f](::sycl::interop_handle& handle) { f->leave(stream_of(handle)); });
    else
      h.AdaptiveCpp_enqueue_custom_operation(
          [f, held = held_buffers(buffers, h)](::sycl::interop_handle& handle) {
            f->leave(stream_of(handle));
          });
  });
  flush();
  return done;
}

core::observer observer_of(const std::shared_ptr<flight>& f) {
  core::observer watch;
  watch.context = new std::shared_ptr<flight>(f);
  watch.is_ready = [](void* context) {
    return gates::is_set((*static_cast<std::shared_ptr<flight>*>(context))->arrived);
  };
  watch.done = [](void* context, const error_info*) {
    const std::unique_ptr<std::shared_ptr<flight>> owner(
        static_cast<std::shared_ptr<flight>*>(context));
    const flight& f = **owner;
    gates::set(f.done);
    const bool has_arrived = gates::is_set(f.arrived);  // else the device is yet to set it
    if (f.sends && f.host.memory && has_arrived) gates::set(f.host.over);
    if (has_arrived) f.all->give_back(f.arrived);
    f.all->give_back(f.done);
    if (f.chosen) f.all->leave(*f.chosen);
  };
  return watch;
}

// Executes an operation before it returns. While a stream waits for the host, the device's
// library may hold back other work of this process: when it loads a kernel for the first time, or
// when NCCL makes its first connections. That can be the very work which is to end the wait, so a
// gate is only for what cannot be awaited here: lone messages, and what one thread calls for one of
// the several ranks that it may serve.
::sycl::event run_through_host(communicator_state& state, ::sycl::queue& queue,
                               const sucl_operation& record, const core::layouts& layout,
                               const std::vector<buffer_use>& buffers, const events& deps) {
  auto issued = state.core().issue(record, layout, false, {});
  const auto& t = issued.operation;
  flush_and_enqueue();
  if (!buffers.empty()) {
    const auto operation = std::make_shared<core::ticket>(t);
    auto fetched = queue.submit([&](::sycl::handler& h) {
      h.depends_on(deps);
      h.AdaptiveCpp_enqueue_custom_operation(
          [operation, memory = buffer_memory(buffers, queue.get_device()),
           held = held_buffers(buffers, h)](::sycl::interop_handle&) {
            memory.set(*operation->get());
          });
    });
    fetched.wait();
    *operation = {};
  } else {
    for (auto e : deps) e.wait();
    if (queue.is_in_order()) queue.wait();
  }
  state.core().mark_ready(t);
  state.core().wait(t);
  return event_of_done(queue);
}

// Nothing comes before it: neither a command to wait for nor a copy.
bool begins_at_once(const flight& f, const std::vector<buffer_use>& buffers, const events& deps) {
  return f.chosen && buffers.empty() && deps.empty() && !(f.host.memory && (f.sends || f.keeps));
}

::sycl::event submit_gated(communicator_state& state, ::sycl::queue& queue,
                           const std::shared_ptr<flight>& f, const core::ticket& operation,
                           const std::vector<buffer_use>& buffers, const events& deps) {
  gates& all = *f->all;
  if (begins_at_once(*f, buffers, deps)) {
    gates::set(f->arrived);
  } else {
    wait_for_host_copies(queue, deps);
    submit_before(f->chosen ? all.at(f->chosen->before) : queue, f,
                  std::make_shared<core::ticket>(operation), buffers, deps);
  }
  auto done = submit_after(f->chosen ? all.at(f->chosen->after) : queue, f, buffers);
  if (f->host.memory && !f->sends) state.copies().add(f->host.over.flag, f->host.over.value);
  return done;
}

}  // namespace

::sycl::event start_gated(communicator_state& state, ::sycl::queue& queue,
                          const sucl_operation& record, const core::layouts& layout,
                          const std::vector<buffer_use>& buffers, const events& deps,
                          bool blocking) {
  const bool lone = record.kind == SUCL_KIND_SEND || record.kind == SUCL_KIND_RECV;
  const bool in_order = queue.is_in_order();
  if ((!lone || in_order) && (blocking || !state.shares_process()))
    return run_through_host(state, queue, record, layout, buffers, deps);
  auto& all = *state.on_device()->gate();
  auto f = std::make_shared<flight>(flight{&all, {}, all.take(), all.take()});
  if (!in_order) f->chosen = all.enter(!deps.empty() || !buffers.empty());
  const auto watch = observer_of(f);
  core::issue_result issued;
  try {
    if (lone) take_bounce_buffer(state, record, layout, *f);
    issued = state.core().issue(record, layout, false, watch);
  } catch (...) {
    if (f->host.memory) gates::set(f->host.over);
    watch.done(watch.context, nullptr);
    throw;
  }
  if (f->host.memory)
    core::stream_path::use_bounce_buffer(issued.operation, f->host.memory - f->first);
  flush_and_enqueue();  // what the operation waits for may be collected still
  try {
    return submit_gated(state, queue, f, issued.operation, buffers, deps);
  } catch (const ::sycl::exception& e) {
    refuse_command(state, record, e.what());
  }
}

}  // namespace sucl::sycl_layer
#endif
