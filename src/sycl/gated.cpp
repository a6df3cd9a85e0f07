// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sycl/gated.hpp"

#include "sycl/adaptivecpp.hpp"
#include "sycl/gate.hpp"

#ifdef SYCL_IMPLEMENTATION_ACPP

namespace sucl::glue {
namespace {

using events = std::vector<::sycl::event>;

/// What an operation in flight and its commands share.
struct flight {
  gates* all = nullptr;
  gates::word arrived;  ///< set by the device: what the operation waits for is done
  gates::word done;     ///< set by the host: the operation is
};

/// The command that comes before the operation, or the one that comes after it, or both.
struct command {
  std::shared_ptr<flight> f;
  core::ticket operation;
  bool before;
  bool after;

  void put(void* stream) const {
    if (before) f->all->set_on(stream, f->arrived);
    if (after) f->all->wait_on(stream, f->done);
  }
};

::sycl::event submit(::sycl::queue queue, const command& c, const std::vector<buffer_use>& buffers,
                     const events& deps) {
  if (queue.is_in_order()) flush_and_enqueue();  // as in on_stream.cpp
  auto done = queue.submit([&](::sycl::handler& h) {
    h.depends_on(deps);
    if (buffers.empty())
      h.AdaptiveCpp_enqueue_custom_operation(
          [c](::sycl::interop_handle& handle) { c.put(stream_of(handle)); });
    else
      h.AdaptiveCpp_enqueue_custom_operation(
          [c, memory = buffer_memory(buffers, queue.get_device()),
           held = held_buffers(buffers, h)](::sycl::interop_handle& handle) {
            if (c.before) memory.set(*c.operation.get());
            c.put(stream_of(handle));
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
    if (gates::is_set(f.arrived)) f.all->give_back(f.arrived);  // else the device is yet to set it
    f.all->give_back(f.done);
  };
  return watch;
}

// Carries an operation out before it returns. While a stream waits for the host, the device's
// library may hold back other work of this process: when it loads a kernel for the first time, or
// when NCCL makes its first connections. That can be the very work which is to end the wait, so a
// gate is only for what cannot be awaited here.
::sycl::event run_through_host(communicator_state& state, ::sycl::queue& queue,
                               const sucl_operation& record, const core::layouts& shape,
                               const std::vector<buffer_use>& buffers, const events& deps) {
  auto issued = state.core().issue(record, shape, false, {});
  const auto& t = issued.operation;
  flush_and_enqueue();
  if (!buffers.empty()) {
    auto fetched = queue.submit([&](::sycl::handler& h) {
      h.depends_on(deps);
      h.AdaptiveCpp_enqueue_custom_operation(
          [t, memory = buffer_memory(buffers, queue.get_device()),
           held = held_buffers(buffers, h)](::sycl::interop_handle&) { memory.set(*t.get()); });
    });
    fetched.wait();
  } else {
    for (auto e : deps) e.wait();
    if (queue.is_in_order()) queue.wait();
  }
  state.core().mark_ready(t);
  state.core().assist(t);
  if (t.failure()) throw error(*t.failure());
  return {};
}

}  // namespace

::sycl::event start_gated(communicator_state& state, ::sycl::queue& queue,
                          const sucl_operation& record, const core::layouts& shape,
                          const std::vector<buffer_use>& buffers, const events& deps) {
  const bool lone = record.kind == SUCL_KIND_SEND || record.kind == SUCL_KIND_RECV;
  if (!lone || queue.is_in_order())
    return run_through_host(state, queue, record, shape, buffers, deps);
  auto& all = *state.on_device()->gate();
  auto f = std::make_shared<flight>(flight{&all, all.take(), all.take()});
  const auto watch = observer_of(f);
  core::issue_result issued;
  try {
    issued = state.core().issue(record, shape, false, watch);
  } catch (...) {
    watch.done(watch.context, nullptr);
    throw;
  }
  const auto& t = issued.operation;
  submit(all.arrivals(), {f, t, true, false}, buffers, deps);
  return submit(all.departures(core::is_point_to_point(record.kind)), {f, t, false, true}, buffers,
                {});
}

}  // namespace sucl::glue
#endif
