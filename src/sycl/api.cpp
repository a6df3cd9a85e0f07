// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The entry points of the API: a call is resolved, then started or run.
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/sizes.hpp"
#include "base/system/device_variables.hpp"
#include "base/threads/concurrently.hpp"
#include "process/failed_exit.hpp"
#include "sycl/common/adopt.hpp"
#include "sycl/common/recording.hpp"
#include "sycl/common/resolve.hpp"
#include "sycl/common/state.hpp"
#include "sycl/completion/native_command.hpp"
#include "sycl/graphs/record.hpp"

#include <sucl/runtime.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>

namespace sucl {
namespace sycl_layer {
namespace {

// The queue whose commands access buffers in the host's memory.
::sycl::queue queue_for_host_memory() {
  try {
    return ::sycl::queue(::sycl::cpu_selector_v);
  } catch (const ::sycl::exception&) {
    return ::sycl::queue{};  // no CPU device: host tasks get at them from any queue
  }
}

// Has a record of a call say it all, by pointers to the memory and the arrays as they came; false
// where it cannot. The parts of a group stay until the thread's next call.
bool complete(const detail::request& r, int size, sucl_operation& o) {
  if (r.send.buffer || r.recv.buffer || r.queue) return false;
  if (r.parts) {
    thread_local std::vector<sucl_operation> parts;
    parts.clear();
    for (const detail::request& part : *r.parts) {
      parts.push_back(part.record);
      if (part.parts || !complete(part, size, parts.back())) return false;
    }
    o.parts = parts.data();
    o.part_count = parts.size();
    return !parts.empty();
  }
  o.send = r.send.pointer;
  o.recv = r.recv.pointer;
  const auto take = [&](const detail::counts* from, const std::uint64_t*& to) {
    if (!from || from->empty()) return true;
    to = reinterpret_cast<const std::uint64_t*>(from->data());
    return from->size() == static_cast<std::size_t>(size);
  };
  return take(r.send_counts, o.send_counts) && take(r.send_displs, o.send_displs) &&
         take(r.recv_counts, o.recv_counts) && take(r.recv_displs, o.recv_displs);
}

// A query of a queue takes a good part of the time of a short call, so only queues that have
// recorded are queried.
bool records_now(communicator_state& state) {
  return state.recorded() && state.queue() && is_recording(*state.queue(), {});
}

// A call that has run before is known by its pointers and counts, not by the ends of its ranges.
bool repeats(communicator_state& state, detail::request& r) {
  return !r.send.bounded && !r.recv.bounded && complete(r, state.core().size(), r.record);
}

}  // namespace

#ifndef SYCL_IMPLEMENTATION_ACPP
bool may_start_cached(communicator_state& state, const std::vector<::sycl::event>& deps) {
  return state.repeats_events() && deps.empty() && state.process()->has_own_thread() &&
         !in_recording_scope() && !(state.queue() && is_recording(*state.queue(), {}));
}
#endif

::sycl::queue queue_of(communicator_state& state, const ::sycl::queue* own) {
  if (own) return *own;
  if (state.queue()) return *state.queue();
  static ::sycl::queue host_only = queue_for_host_memory();
  // DPC++ keeps some bytes of each command of an out-of-order queue until a thread waits for all.
  static std::atomic<unsigned> uses = 0;
  if (uses.fetch_add(1, std::memory_order_relaxed) % 256 == 255 && idle(host_only))
    host_only.wait();
  return host_only;
}

communicator_state::communicator_state(std::shared_ptr<core::process> owner,
                                       std::optional<::sycl::queue> queue)
    : m_process(std::move(owner)), m_queue(std::move(queue)) {
  if (!m_queue) return;
  m_device = std::make_shared<device>(*m_queue, m_process->settings());
  m_repeats = m_device->remembers() && !m_queue->is_in_order();
  m_repeats_events =
      m_repeats && !m_queue->has_property<::sycl::property::queue::enable_profiling>();
}

void communicator_state::set_core(std::shared_ptr<core::communicator> c) {
  m_core = std::move(c);
  const auto& members = m_core->where().members;
  const member& self = members[static_cast<std::size_t>(m_core->rank())];
  m_shares_process = std::any_of(members.begin(), members.end(), [&](const member& m) {
    return m.rank != self.rank && m.node == self.node && m.process == self.process;
  });
}

core::device_services communicator_state::services() {
  if (!m_device) return {};
  auto s = m_device->services();
  s.owner = m_device;
  return s;
}

std::shared_ptr<communicator_state> make_state(const std::shared_ptr<core::process>& owner,
                                               const std::optional<::sycl::queue>& queue,
                                               core::device_services& services) {
  error_info failure;
  try {
    auto made = std::make_shared<communicator_state>(owner, queue);
    services = made->services();
    return made;
  } catch (const error& e) {
    failure = e.info();
  } catch (const std::bad_alloc&) {
    failure.code = errc::out_of_memory;
    failure.message = "there is no memory for what a communicator needs";
    failure.hint = "Free memory first";
  } catch (const ::sycl::exception& e) {
    const bool memory = e.code() == ::sycl::errc::memory_allocation;
    failure.code = memory ? errc::out_of_memory : errc::native;
    failure.message = std::string("SYCL refuses what a communicator needs: ") + e.what();
    failure.hint = memory ? "Free memory first" : "Check the state of the queue's device";
  }
  services.self.failure = std::move(failure);
  return nullptr;
}

::sycl::event start_or_run(communicator_state& state, ::sycl::queue& queue, resolved& call,
                           const std::vector<::sycl::event>& deps) {
  if (is_recording(queue, deps)) return record(state, queue, call, deps);
  refuse_in_scope(state, call.record);
  if (state.process()->has_own_thread())
    return start(state, queue, call.record, call.layout, call.buffers, deps);
  if (call.record.kind == SUCL_KIND_SEND || call.record.kind == SUCL_KIND_RECV) {
    error_info info;
    info.code = errc::unavailable;
    info.operation = core::describe(call.record);
    info.rank = state.core().rank();
    info.message =
        "MPI was initialised without MPI_THREAD_MULTIPLE, so that what returns an event "
        "is executed before the call returns, and a lone message might wait for a call "
        "that is still to come";
    info.hint =
        "Use sendrecv, a group or the blocking form, or call MPI_Init_thread with "
        "MPI_THREAD_MULTIPLE";
    state.core().refuse(call.record, info);
    throw error(std::move(info));
  }
  run_after(state, call, call.queue, deps);
  return event_of_done(queue);
}

::sycl::event submit(communicator_state& state, detail::request& request,
                     const std::vector<::sycl::event>& deps) {
  throw_if_in_function();
#ifndef SYCL_IMPLEMENTATION_ACPP
  const bool keeps = may_start_cached(state, deps) && repeats(state, request);
  if (keeps) {
    if (auto started = start_cached(state, request.record)) return *started;
  }
#endif
  resolved call;
  resolve_call(state, request, call);
  auto queue = queue_of(state, call.queue);
  auto done = start_or_run(state, queue, call, deps);
#ifndef SYCL_IMPLEMENTATION_ACPP
  if (keeps) state.core().prepared().remember_issued(request.record, call.record);
#endif
  return done;
}

void run(communicator_state& state, detail::request& request,
         const std::vector<::sycl::event>& deps) {
  core::throw_if_forked();
  throw_if_in_function();
  const bool keeps =
      state.repeats() && !records_now(state) && deps.empty() && repeats(state, request);
  if (keeps && state.core().run_cached(request.record)) return;
  resolved call;
  resolve_call(state, request, call);
  if (!keeps) return run_after(state, call, call.queue, deps);
  if (state.queue()) refuse_recording(state, *state.queue(), call.record, deps);
  state.core().run(call.record, call.layout, &request.record);
}

// Whether start() may wait for the operation in the thread that calls. With DPC++ a blocking call
// on a device with native streams is an asynchronous one and a wait, on every rank.
#ifdef SYCL_IMPLEMENTATION_ACPP
constexpr bool waits_in_call = true;
#else
constexpr bool waits_in_call = false;
#endif

void run_after(communicator_state& state, resolved& call, const ::sycl::queue* own,
               const std::vector<::sycl::event>& deps) {
  auto* device = state.on_device();
  const auto* named = own ? own : state.queue() ? &*state.queue() : nullptr;
  if (named) refuse_recording(state, *named, call.record, deps);
  if (device && device->streams() && (!call.buffers.empty() || named->is_in_order())) {
    // The data stays on the device, and nothing has to be waited for before.
    ::sycl::queue queue = *named;
    await_event(start(state, queue, call.record, call.layout, call.buffers, deps, waits_in_call));
    state.core().check();
    return;
  }
  for (const auto& e : deps) await_event(e);
  if (named && named->is_in_order() && !idle(*named)) await_idle(*named);
  run_now(state, call.record, call.parts, call.layout, call.buffers);
}

std::size_t share(communicator_state& state, kind k, std::size_t elements) {
  check_alive(state);
  const auto ranks = static_cast<std::size_t>(state.core().size());
  if (elements % ranks == 0) return elements / ranks;
  error_info info;
  info.code = errc::invalid_count;
  info.operation = name(k);
  info.rank = state.core().rank();
  info.message = std::to_string(elements) +
                 " elements cannot be divided into one block for each of " + std::to_string(ranks) +
                 " ranks";
  info.hint = "Pass a buffer or block whose size is a multiple of the number of ranks";
  sucl_operation record{};
  record.kind = static_cast<sucl_kind>(k);
  state.core().refuse(record, info);
  throw error(std::move(info));
}

int rank(const communicator_state& state) { return state.core().rank(); }
int size(const communicator_state& state) { return state.core().size(); }

namespace {

// Makes the communicator of one rank. Throws on every rank if some rank has no state.
template <class Make>
communicator make(const std::shared_ptr<core::process>& owner, const ::sycl::queue* queue,
                  Make&& make_core) {
  collect_retired();
  core::throw_if_forked();
  core::device_services services;
  auto state =
      make_state(owner, queue ? std::optional<::sycl::queue>(*queue) : std::nullopt, services);
  auto core = make_core(std::move(services));
  state->set_core(std::move(core));
  return communicator(std::move(state));
}

communicator make_world(const std::shared_ptr<core::process>& owner, const ::sycl::queue* queue) {
  core::setup_step step(owner->steps(), "world()", owner->everyone());
  return core::in_step(step, [&] {
    return make(owner, queue, [&](core::device_services s) { return owner->world(std::move(s)); });
  });
}

}  // namespace

adopted adopt(const std::shared_ptr<core::process>& owner, const void* native, std::size_t bytes,
              const ::sycl::queue& queue) {
  owner->at_end(hand_over_exceptions);
  adopted result;
  result.outer = make(owner, &queue, [&](core::device_services s) {
    return result.core = owner->adopt(native, bytes, std::move(s));
  });
  return result;
}

communicator runtime_state::world(const ::sycl::queue* queue) {
  return make_world(m_process, queue);
}

communicator runtime_state::adopt(const void* native, std::size_t bytes,
                                  const ::sycl::queue* queue) {
  auto [label, members] = m_process->step_over({native, bytes}, "adopt()");
  core::setup_step step(m_process->steps(), std::move(label), std::move(members));
  return core::in_step(step, [&] {
    return make(m_process, queue, [&](core::device_services s) {
      return m_process->adopt(native, bytes, std::move(s));
    });
  });
}

std::vector<communicator> runtime_state::ranks(const std::vector<::sycl::queue>& queues,
                                               core::native_group over) {
  core::throw_if_forked();
  std::vector<std::shared_ptr<core::process>> ranks;
  {
    auto [label, members] = over.handle
                                ? m_process->step_over(over, "adopt(queues)")
                                : core::process::step_scope{"world(queues)", m_process->everyone()};
    core::setup_step step(m_process->steps(), std::move(label), std::move(members));
    ranks = core::in_step(step, [&] { return m_process->start_ranks(queues.size(), over); });
  }
  if (ranks.front() == m_process)
    return {over.handle ? adopt(over.handle, over.bytes, queues.data()) : world(queues.data())};
  std::vector<communicator> made(queues.size());
  base::run_concurrently(ranks.size(),
                         [&](std::size_t i) { made[i] = make_world(ranks[i], &queues[i]); });
  return made;
}

}  // namespace sycl_layer

sycl_layer::communicator_state& communicator::state() const {
  core::throw_if_forked();
  if (!m_state)
    base::fail(errc::shut_down, "the communicator is empty",
               "Get one from sucl::runtime, or from split() with a colour of at least 0");
  return *m_state;
}

int communicator::rank() const { return state().core().rank(); }
int communicator::size() const { return state().core().size(); }

const std::vector<member>& communicator::members() const { return state().core().where().members; }

bool communicator::has_queue() const { return state().queue().has_value(); }

::sycl::queue communicator::queue() const {
  if (!state().queue())
    base::fail(errc::invalid_argument, "the communicator was made without a queue",
               "Pass a sycl::queue to runtime::world or runtime::adopt");
  return *state().queue();
}

blocking_communicator communicator::blocking() const {
  state();
  return blocking_communicator(m_state);
}

namespace {

// A communicator of some ranks of another one, for split() and dup(). Null where the colour is
// negative.
std::shared_ptr<sycl_layer::communicator_state> part_of(sycl_layer::communicator_state& old,
                                                        int colour, int key, core::arrival call) {
  const auto step = old.core().begin_step(call == core::arrival::dup ? "dup" : "split");
  return core::in_step(*step, [&]() -> std::shared_ptr<sycl_layer::communicator_state> {
    core::device_services services;
    auto made = sycl_layer::make_state(old.process(), old.queue(), services);
    auto core = old.core().split(colour, key, std::move(services), call);
    if (!core) return nullptr;
    made->set_core(std::move(core));
    return made;
  });
}

}  // namespace

communicator communicator::split(int colour, int key) const {
  auto made = part_of(state(), colour, key, core::arrival::split);
  return made ? communicator(std::move(made)) : communicator{};
}

communicator communicator::dup() const {
  return communicator(part_of(state(), 0, rank(), core::arrival::dup));
}

// What has been made so far is kept for a call that comes after a timeout.
communicator communicator::shrink() const {
  auto& old = state();
  core::device_services services;
  if (old.shrunk())
    services = old.shrunk()->services();
  else
    old.shrunk() = sycl_layer::make_state(old.process(), old.queue(), services);
  auto core = old.core().shrink(services);
  old.shrunk()->set_core(std::move(core));
  return communicator(std::exchange(old.shrunk(), nullptr));
}

std::string communicator::explain(kind k, std::size_t bytes, type t, op o) const {
  return state().core().backends().explain(k, bytes, t, o);
}

std::string communicator::selected_backend(kind k, std::size_t bytes, type t, op o) const {
  return state().core().backends().name_by_event(k, bytes, t, o);
}

void communicator::use_tuning(const std::string& toml) {
  const auto step = state().core().begin_step("use_tuning");
  core::in_step(*step, [&] {
    {
      const core::setup_pause operations;
      state().core().wait_all();
    }
    state().core().use_tuning(toml);
  });
}

// Beyond any address space it is `unlimited`, for which no rank has memory: all get an error.
void* communicator::allocate_elements(std::size_t count, std::size_t element_size) {
  const auto step = state().core().begin_step("allocate");
  return core::in_step(*step, [&] { return state().core().allocate(count, element_size); });
}
bool communicator::register_elements(void* memory, std::size_t count, std::size_t element_size) {
  const auto step = state().core().begin_step("register_memory");
  return core::in_step(
      *step, [&] { return state().core().attach(memory, base::product(count, element_size)); });
}
void communicator::deregister_memory(void* memory) {
  const auto step = state().core().begin_step("deregister_memory");
  core::in_step(*step, [&] { state().core().detach(memory); });
}
void communicator::deallocate(void* memory) {
  const auto step = state().core().begin_step("deallocate");
  core::in_step(*step, [&] {
    if (std::uncaught_exceptions() == 0) {
      const core::setup_pause operations;
      sycl_layer::await_user_ops(*this);
    }
    state().core().deallocate(memory);
  });
}

void communicator::refuse(const sucl_operation& record, const error_info& wrong) const {
  sycl_layer::check_alive(state());
  state().core().refuse(record, wrong);
}

void communicator::fail(const error_info& why) const {
  sycl_layer::check_alive(state());
  state().core().fail_everywhere(why);
}

void communicator::wait() const {
  sycl_layer::throw_if_in_function();
  state().wait_all();
}
void communicator::check() const { state().core().check(); }
void communicator::check_issued() const { state().core().check_issued(); }

namespace {

// What SYCL throws where there is no device says neither why nor what to do.
void log_missing_devices() noexcept try {
  if (!::sycl::device::get_devices().empty()) return;
  base::log(base::log_level::error, "runtime",
            "the SYCL runtime finds no device, so there can be no queue; " +
                base::cure_for_no_device([](const char* name) { return std::getenv(name); }) +
                ". `sucl doctor` says more");
} catch (const ::sycl::exception&) {
}

}  // namespace

namespace {

void note_owner(const sycl_layer::runtime_state* state, const runtime* owner) noexcept {
  if (state) state->process().note_on_stack(core::is_on_stack(owner));
}

}  // namespace

runtime::runtime(int& argc, char**& argv)
    : runtime(std::make_shared<sycl_layer::runtime_state>(&argc, &argv)) {}
runtime::runtime() : runtime(std::make_shared<sycl_layer::runtime_state>(nullptr, nullptr)) {}
runtime::runtime(std::shared_ptr<sycl_layer::runtime_state> state) : m_state(std::move(state)) {
  note_owner(m_state.get(), this);
}
runtime runtime::from_native(const void* comm, std::size_t bytes) {
  return runtime(std::make_shared<sycl_layer::runtime_state>(nullptr, nullptr,
                                                             core::native_group{comm, bytes}));
}
runtime::~runtime() {
  if (m_state && std::uncaught_exceptions() > 0) log_missing_devices();
}
runtime::runtime(runtime&& other) noexcept : m_state(std::move(other.m_state)) {
  note_owner(m_state.get(), this);
}
runtime& runtime::operator=(runtime&& other) noexcept {
  m_state = std::move(other.m_state);
  note_owner(m_state.get(), this);
  return *this;
}

namespace {

sycl_layer::runtime_state& alive(const std::shared_ptr<sycl_layer::runtime_state>& state) {
  core::throw_if_forked();
  if (!state)
    base::fail(errc::shut_down, "the runtime was moved from or shut down",
               "Use the one it went to");
  return *state;
}

}  // namespace

int runtime::rank() const { return alive(m_state).process().rank(); }
int runtime::size() const { return alive(m_state).process().size(); }
communicator runtime::world() { return alive(m_state).world(nullptr); }
communicator runtime::world(const ::sycl::queue& queue) { return alive(m_state).world(&queue); }

std::vector<communicator> runtime::world(const std::vector<::sycl::queue>& queues) {
  return alive(m_state).ranks(queues, {});
}

std::vector<communicator> runtime::adopt_native(const void* comm, std::size_t bytes,
                                                const std::vector<::sycl::queue>& queues) {
  return alive(m_state).ranks(queues, {comm, bytes});
}

communicator runtime::adopt_native(const void* comm, std::size_t bytes,
                                   const ::sycl::queue* queue) {
  return alive(m_state).adopt(comm, bytes, queue);
}

std::string runtime::control_plane() const {
  return alive(m_state).process().control_description();
}

void runtime::shut_down() {
  if (m_state) m_state->process().shut_down();
}

}  // namespace sucl
