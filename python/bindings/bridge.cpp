// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "bridge.hpp"

#include "base/system/library.hpp"
#include "sycl/common/adopt.hpp"

#include <sucl/sucl.hpp>
#ifndef SYCL_IMPLEMENTATION_ACPP
#include <sycl/ext/oneapi/backend/hip.hpp>
#endif

namespace sucl::python {
namespace {

const ::sycl::queue& queue_at(const void* pointer) {
  return *static_cast<const ::sycl::queue*>(pointer);
}

std::vector<::sycl::queue> queues_at(const std::vector<std::shared_ptr<queue_handle>>& handles) {
  std::vector<::sycl::queue> all;
  all.reserve(handles.size());
  for (const auto& one : handles) all.push_back(queue_at(one->get()));
  return all;
}

std::vector<::sycl::event> events_of(const dependencies& deps) {
  std::vector<::sycl::event> events;
  events.reserve(deps.size());
  for (const event_handle& e : deps)
    if (e.get()) events.push_back(*static_cast<const ::sycl::event*>(e.get()));
  return events;
}

event_handle handle(const ::sycl::event& e) { return event_handle(&e); }

detail::operand erased(const operand& memory) {
  detail::operand o;
  o.pointer = memory.pointer;
  o.bounded = memory.given;
  o.range[2] = memory.elements;
  return o;
}

detail::request request_of(const call& c) {
  detail::request r;
  r.record = c.record;
  const detail::counts** lists[] = {&r.send_counts, &r.send_displs, &r.recv_counts, &r.recv_displs};
  for (std::size_t i = 0; i < c.arrays.size(); ++i)
    if (c.arrays[i]) *lists[i] = &*c.arrays[i];
  r.send = erased(c.send);
  r.recv = erased(c.recv);
  if (c.queue) r.queue = &queue_at(c.queue);
  return r;
}

// On the communicator's own queue none has to be named.
detail::request request_on(const communicator& comm, const call& c) {
  detail::request r = request_of(c);
  if (r.queue && comm.has_queue() && comm.queue() == *r.queue) r.queue = nullptr;
  return r;
}

// An event of everything that the queue, or its stream, has been given.
::sycl::event mark_of(::sycl::queue& queue) {
#ifdef SYCL_IMPLEMENTATION_ACPP
  return queue.submit([](::sycl::handler& h) {
    h.AdaptiveCpp_enqueue_custom_operation([](::sycl::interop_handle&) {});
  });
#else
  return queue.ext_oneapi_submit_barrier();
#endif
}

// What an out-of-order queue has been given comes before the operation too, as for an in-order one.
std::vector<::sycl::event> all_before(const call& c, const dependencies& deps) {
  auto events = events_of(deps);
  if (!c.queue) return events;
  ::sycl::queue queue = queue_at(c.queue);
  if (queue.is_in_order()) return events;
#ifdef SYCL_IMPLEMENTATION_ACPP
  for (auto& e : queue.get_wait_list()) events.push_back(std::move(e));
#else
  if (!queue.ext_oneapi_empty()) events.push_back(mark_of(queue));
#endif
  return events;
}

// Of a GPU: its number in the API of its vendor; of other devices -1.
int number_of(const ::sycl::device& d) {
#ifdef SYCL_IMPLEMENTATION_ACPP
  const auto backend = d.get_backend();
  const bool has_streams = backend == ::sycl::backend::cuda || backend == ::sycl::backend::hip;
  return has_streams ? static_cast<int>(d.AdaptiveCpp_device_id().get_id()) : -1;
#else
  using ::sycl::backend;
  if (d.get_backend() == backend::ext_oneapi_cuda)
    return static_cast<int>(::sycl::get_native<backend::ext_oneapi_cuda>(d));
  if (d.get_backend() == backend::ext_oneapi_hip)
    return static_cast<int>(::sycl::get_native<backend::ext_oneapi_hip>(d));
  return -1;
#endif
}

template <class T>
struct tag {
  using element = T;
};

// Opaque elements of a size that has no C++ type here are moved in larger numbers by no plan.
[[noreturn]] void no_element() {
  error_info info;
  info.code = errc::invalid_type;
  info.message = "compiled plans are for elements of SuCL's own types";
  info.hint = "View the array as one of them, as in array.view('u1')";
  throw error(info);
}

// Calls f(tag<T>) of the C++ type of an element type.
template <class F>
auto with_type(type t, F&& f) {
  switch (t) {
    case type::int8: return f(tag<std::int8_t>{});
    case type::uint8: return f(tag<std::uint8_t>{});
    case type::int16: return f(tag<std::int16_t>{});
    case type::uint16: return f(tag<std::uint16_t>{});
    case type::int32: return f(tag<std::int32_t>{});
    case type::uint32: return f(tag<std::uint32_t>{});
    case type::int64: return f(tag<std::int64_t>{});
    case type::uint64: return f(tag<std::uint64_t>{});
    case type::fp16: return f(tag<fp16>{});
    case type::bf16: return f(tag<bf16>{});
    case type::fp32: return f(tag<float>{});
    case type::fp64: return f(tag<double>{});
    case type::complex_fp32: return f(tag<std::complex<float>>{});
    case type::complex_fp64: return f(tag<std::complex<double>>{});
    case type::boolean: return f(tag<bool>{});
    case type::fp8_e4m3: return f(tag<fp8_e4m3>{});
    case type::fp8_e5m2: return f(tag<fp8_e5m2>{});
    default: no_element();
  }
}

template <class T>
using element_of = typename T::element;

[[noreturn]] void no_comm(std::size_t bytes) {
  error_info info;
  info.code = errc::invalid_argument;
  info.message = "an MPI_Comm of " + std::to_string(bytes) + " bytes is of no MPI that is known";
  info.hint = "Pass a communicator of mpi4py";
  throw error(info);
}

// Calls f(native) with an MPI_Comm of the size that it has in this MPI.
template <class F>
auto with_comm(const void* comm, std::size_t bytes, F&& f) {
  if (bytes == sizeof(std::int32_t)) return f(*static_cast<const std::int32_t*>(comm));
  if (bytes == sizeof(void*)) return f(*static_cast<void* const*>(comm));
  no_comm(bytes);
}

runtime& alive(const std::shared_ptr<runtime>& r) {
  if (r) return *r;
  error_info info;
  info.code = errc::shut_down;
  info.message = "the runtime was abandoned after an error";
  info.hint = "End the process";
  throw error(info);
}

}  // namespace

queue_handle queue_handle::of_device(const std::string& device) {
  if (device != "default" && device != "cpu" && device != "gpu") {
    error_info info;
    info.code = errc::invalid_argument;
    info.message = "there is no device '" + device + "'";
    info.hint = "Pass 'cpu', 'gpu' or 'default', or a queue of dpctl";
    throw error(info);
  }
  try {
    if (device == "cpu")
      return queue_handle(std::make_shared<::sycl::queue>(::sycl::cpu_selector_v));
    if (device == "gpu")
      return queue_handle(std::make_shared<::sycl::queue>(::sycl::gpu_selector_v));
    return queue_handle(std::make_shared<::sycl::queue>());
  } catch (const ::sycl::exception& e) {
    error_info info;
    info.code = errc::unavailable;
    info.message = "SYCL finds no device '" + device + "': " + e.what();
    info.hint = "`sucl info` lists the devices; arrays of the host need no queue";
    throw error(info);
  }
}
queue_handle queue_handle::of_gpu(int number) {
  for (const auto& d : ::sycl::device::get_devices())
    if (number_of(d) == number)
      return queue_handle(std::make_shared<::sycl::queue>(
          d, ::sycl::property_list{::sycl::property::queue::in_order()}));
  error_info info;
  info.code = errc::unavailable;
  info.message = "SYCL finds no GPU with the number " + std::to_string(number) +
                 ", and a tensor is in the memory of that one";
  info.hint =
      "Build sucl with a SYCL implementation that has the GPU (`sucl info` lists what this one "
      "has), or copy the tensor to the host first";
  throw error(info);
}
void* queue_handle::native_stream() const {
  const ::sycl::queue& queue = queue_at(get());
#ifdef SYCL_IMPLEMENTATION_ACPP
  auto* executor = queue.AdaptiveCpp_inorder_executor();
  return executor ? executor->get_queue()->get_native_type() : nullptr;
#else
  using ::sycl::backend;
  if (queue.get_backend() == backend::ext_oneapi_hip)
    return reinterpret_cast<void*>(::sycl::get_native<backend::ext_oneapi_hip>(queue));
  return reinterpret_cast<void*>(::sycl::get_native<backend::ext_oneapi_cuda>(queue));
#endif
}
queue_handle::queue_handle(const void* sycl_queue)
    : m_queue(std::make_shared<::sycl::queue>(queue_at(sycl_queue))) {}
std::string queue_handle::device() const {
  return queue_at(get()).get_device().get_info<::sycl::info::device::name>();
}
void* queue_handle::copy() const { return new ::sycl::queue(queue_at(get())); }
void queue_handle::destroy(void* copied) { delete static_cast<::sycl::queue*>(copied); }

event_handle::event_handle(const void* sycl_event)
    : m_event(std::make_shared<::sycl::event>(*static_cast<const ::sycl::event*>(sycl_event))) {}
void event_handle::wait() const {
  if (m_event) static_cast<::sycl::event*>(m_event.get())->wait();
}
bool event_handle::done() const {
  return !m_event || static_cast<const ::sycl::event*>(m_event.get())
                             ->get_info<::sycl::info::event::command_execution_status>() ==
                         ::sycl::info::event_command_status::complete;
}
void* event_handle::copy() const {
  return m_event ? new ::sycl::event(*static_cast<const ::sycl::event*>(m_event.get()))
                 : new ::sycl::event;
}
void event_handle::destroy(void* copied) { delete static_cast<::sycl::event*>(copied); }

persistent_handle::persistent_handle(persistent p)
    : m_operation(std::make_shared<persistent>(std::move(p))) {}
event_handle persistent_handle::start(const dependencies& deps) const {
  return handle(m_operation->start(events_of(deps)));
}
void persistent_handle::run(const dependencies& deps) const { m_operation->run(events_of(deps)); }

plan_handle::plan_handle(compiled_plan plan, type element, std::size_t element_size)
    : m_plan(std::make_shared<compiled_plan>(std::move(plan))),
      m_element(element),
      m_element_size(element_size) {}
event_handle plan_handle::start(const void* send, void* recv, const dependencies& deps) const {
  return with_type(m_element, [&](auto t) {
    using T = element_of<decltype(t)>;
    return handle(
        m_plan->start(static_cast<const T*>(send), static_cast<T*>(recv), events_of(deps)));
  });
}
void plan_handle::run(const void* send, void* recv, const dependencies& deps) const {
  with_type(m_element, [&](auto t) {
    using T = element_of<decltype(t)>;
    m_plan->run(static_cast<const T*>(send), static_cast<T*>(recv), events_of(deps));
  });
}
std::size_t plan_handle::send_size() const { return m_plan->send_size(); }
std::size_t plan_handle::recv_size() const { return m_plan->recv_size(); }
std::string plan_handle::explain() const { return m_plan->explain(); }

communicator_handle::communicator_handle(communicator c)
    : m_communicator(std::make_shared<communicator>(std::move(c))) {}
communicator_handle::communicator_handle(const std::shared_ptr<core::process>& owner,
                                         const void* members, std::size_t bytes,
                                         const queue_handle& queue,
                                         std::shared_ptr<core::communicator>& core) {
  auto made = sycl_layer::adopt(owner, members, bytes, queue_at(queue.get()));
  core = std::move(made.core);
  m_communicator = std::make_shared<communicator>(std::move(made.outer));
}
bool communicator_handle::empty() const { return !*m_communicator; }
int communicator_handle::rank() const { return m_communicator->rank(); }
int communicator_handle::size() const { return m_communicator->size(); }
const std::vector<member>& communicator_handle::members() const {
  return m_communicator->members();
}
bool communicator_handle::has_queue() const { return m_communicator->has_queue(); }
queue_handle communicator_handle::queue() const {
  const ::sycl::queue q = m_communicator->queue();
  return queue_handle(&q);
}
communicator_handle communicator_handle::split(int colour, int key) const {
  return communicator_handle(m_communicator->split(colour, key));
}
communicator_handle communicator_handle::dup() const {
  return communicator_handle(m_communicator->dup());
}
communicator_handle communicator_handle::shrink() const {
  return communicator_handle(m_communicator->shrink());
}
std::string communicator_handle::explain(kind k, std::size_t bytes, type t, op o) const {
  return m_communicator->explain(k, bytes, t, o);
}
std::string communicator_handle::selected_backend(kind k, std::size_t bytes, type t, op o) const {
  return m_communicator->selected_backend(k, bytes, t, o);
}
void communicator_handle::use_tuning(const std::string& toml) const {
  m_communicator->use_tuning(toml);
}
void communicator_handle::wait() const { m_communicator->wait(); }
void communicator_handle::check() const { m_communicator->check(); }
void communicator_handle::check_issued() const { m_communicator->check_issued(); }

void communicator_handle::refuse(const call& c, const error_info& wrong) const {
  m_communicator->refuse(c.record, wrong);
}
void communicator_handle::fail(const error_info& why) const { m_communicator->fail(why); }
event_handle communicator_handle::submit(const call& c, const dependencies& deps) const {
  auto request = request_on(*m_communicator, c);
  return handle(m_communicator->submit(request, all_before(c, deps)));
}
event_handle communicator_handle::mark() const {
  ::sycl::queue queue = m_communicator->queue();
  return handle(mark_of(queue));
}
void communicator_handle::run(const call& c, const dependencies& deps) const {
  auto request = request_on(*m_communicator, c);
  m_communicator->blocking().submit(request, all_before(c, deps));
}
persistent_handle communicator_handle::prepare(const call& c, const dependencies& deps) const {
  auto request = request_on(*m_communicator, c);
  return persistent_handle(m_communicator->persistent().submit(request, events_of(deps)));
}
plan_handle communicator_handle::compile(const composition& c, const compile_options& o,
                                         type element, std::size_t element_size) const {
  return with_type(element, [&](auto t) {
    using T = element_of<decltype(t)>;
    return plan_handle(m_communicator->compile<T>(c, o), element, element_size);
  });
}
event_handle communicator_handle::reduce_by(const reduction& r, const dependencies& deps,
                                            bool blocking) const {
  const detail::erased_op op{r.fold, {}};
  return handle(detail::reduce_by(
      *m_communicator, op, {r.what, r.send, r.recv, r.counts, r.root, r.element, r.element_size},
      events_of(deps), blocking));
}

event_handle communicator_handle::sum_scaled(const reduction& r, const dependencies& deps) const {
  const detail::erased_op scale{r.fold, {}};
  return handle(detail::sum_scaled(
      *m_communicator, scale, {r.what, r.send, r.recv, r.counts, r.root, r.element, r.element_size},
      events_of(deps)));
}

executable_handle::executable_handle(executable e)
    : m_executable(std::make_shared<executable>(std::move(e))) {}
event_handle executable_handle::replay(const dependencies& deps) const {
  return handle(m_executable->replay(events_of(deps)));
}
void executable_handle::update(std::function<void()> calls) const {
  m_executable->update(std::move(calls));
}
bool executable_handle::is_graph() const { return m_executable->is_graph(); }
executable_handle communicator_handle::record(const void* sycl_queue,
                                              std::function<void()> calls) const {
  const ::sycl::queue on = sycl_queue ? queue_at(sycl_queue) : m_communicator->queue();
  return executable_handle(m_communicator->record(on, std::move(calls)));
}

neighborhood_handle::neighborhood_handle(neighborhood n)
    : m_neighborhood(std::make_shared<neighborhood>(std::move(n))) {}
neighborhood_handle::neighborhood_handle(const communicator_handle& of,
                                         const std::vector<int>& sources,
                                         const std::vector<int>& destinations)
    : neighborhood_handle(neighborhood(*of.m_communicator, sources, destinations)) {}
neighborhood_handle neighborhood_handle::grid(const communicator_handle& of,
                                              const std::vector<int>& extents,
                                              const std::vector<bool>& periodic) {
  return neighborhood_handle(neighborhood::grid(*of.m_communicator, extents, periodic));
}

namespace {

neighborhood_handle::neighbors pairs_of(const std::vector<detail::neighbor>& list) {
  neighborhood_handle::neighbors pairs;
  for (const detail::neighbor& n : list) pairs.emplace_back(n.rank, n.tag);
  return pairs;
}

}  // namespace

neighborhood_handle::neighbors neighborhood_handle::from() const {
  return pairs_of(m_neighborhood->from());
}
neighborhood_handle::neighbors neighborhood_handle::to() const {
  return pairs_of(m_neighborhood->to());
}
std::vector<int> neighborhood_handle::coordinates() const { return m_neighborhood->coordinates(); }
communicator_handle neighborhood_handle::comm() const {
  return communicator_handle(m_neighborhood->comm());
}

void* communicator_handle::allocate(std::size_t bytes) const {
  return m_communicator->allocate<std::byte>(bytes);
}
void communicator_handle::deallocate(void* memory) const { m_communicator->deallocate(memory); }
bool communicator_handle::register_memory(void* memory, std::size_t bytes) const {
  return m_communicator->register_memory(static_cast<std::byte*>(memory), bytes);
}
void communicator_handle::deregister_memory(void* memory) const {
  m_communicator->deregister_memory(memory);
}

void communicator_handle::check_reach(const void* pointer, const void* sycl_queue) const {
  if (!sycl_queue || has_queue()) return;
  const auto& queue = queue_at(sycl_queue);
  if (queue.get_device().is_cpu()) return;
  if (::sycl::get_pointer_type(pointer, queue.get_context()) != ::sycl::usm::alloc::device) return;
  error_info info;
  info.code = errc::invalid_memory;
  info.message = "the array is in memory of a device, and the communicator has no queue";
  info.hint = "Make the communicator with the array's queue: sucl.world(queue)";
  throw error(info);
}

group_handle::group_handle() : m_group(std::make_shared<group>()) {}
group_handle::group_handle(const communicator_handle& of)
    : m_group(std::make_shared<group>(*of.m_communicator)) {}
void group_handle::add(const call& c) {
  auto request = request_of(c);
  m_group->submit(request, {});
}
void group_handle::add(const communicator_handle& on, const call& c) {
  auto request = request_on(*on.m_communicator, c);
  m_group->on(*on.m_communicator).submit(request, {});
}
std::vector<event_handle> group_handle::submit_each(const dependencies& deps) {
  std::vector<event_handle> events;
  for (const auto& e : m_group->submit_each(events_of(deps))) events.push_back(handle(e));
  return events;
}
event_handle group_handle::submit(const dependencies& deps) {
  return handle(m_group->submit(events_of(deps)));
}
void group_handle::run(const dependencies& deps) { m_group->run(events_of(deps)); }

namespace {

// Of CUDA's driver: our own declarations.
using get_context = int (*)(void** context);
using set_context = int (*)(void* context);
struct driver {
  get_context get = nullptr;
  set_context set = nullptr;

  driver() noexcept {
    try {
      static const base::library cuda = base::library::open("libcuda.so.1");
      get = cuda.symbol_as<get_context>("cuCtxGetCurrent");
      set = cuda.symbol_as<set_context>("cuCtxSetCurrent");
    } catch (const error&) {
      get = nullptr;
    }
  }
};
const driver& the_driver() {
  static const driver it;
  return it;
}

}  // namespace

kept_device::kept_device() {
  if (the_driver().get && the_driver().get(&m_context) != 0) m_context = nullptr;
}
kept_device::~kept_device() {
  if (m_context) the_driver().set(m_context);
}

runtime_handle runtime_handle::start(std::vector<std::string>& arguments) {
  std::vector<char*> words;
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  int count = static_cast<int>(arguments.size());
  char** list = words.data();
  auto made = std::make_shared<runtime>(count, list);
  std::vector<std::string> left(list, list + count);
  arguments = std::move(left);
  return runtime_handle(std::move(made));
}
runtime_handle runtime_handle::join(const unique_id& id, int rank, int size) {
  return runtime_handle(std::make_shared<runtime>(runtime::join(id, rank, size)));
}
runtime_handle runtime_handle::join(const rendezvous_store& store, int rank, int size) {
  return runtime_handle(std::make_shared<runtime>(runtime::join(store, rank, size)));
}
runtime_handle runtime_handle::from_mpi(const void* comm, std::size_t bytes) {
  return with_comm(comm, bytes, [](auto native) {
    return runtime_handle(std::make_shared<runtime>(runtime::from(native)));
  });
}
int runtime_handle::rank() const { return alive(m_runtime).rank(); }
int runtime_handle::size() const { return alive(m_runtime).size(); }
std::string runtime_handle::control_plane() const { return alive(m_runtime).control_plane(); }
communicator_handle runtime_handle::world(const void* sycl_queue) const {
  runtime& r = alive(m_runtime);
  return communicator_handle(sycl_queue ? r.world(queue_at(sycl_queue)) : r.world());
}
std::vector<communicator_handle> runtime_handle::worlds(
    const std::vector<std::shared_ptr<queue_handle>>& queues) const {
  std::vector<communicator_handle> handles;
  for (communicator& c : alive(m_runtime).world(queues_at(queues)))
    handles.emplace_back(std::move(c));
  return handles;
}
communicator_handle runtime_handle::adopt(const void* comm, std::size_t bytes,
                                          const void* sycl_queue) const {
  return with_comm(comm, bytes, [&](auto native) {
    runtime& r = alive(m_runtime);
    return communicator_handle(sycl_queue ? r.adopt(native, queue_at(sycl_queue))
                                          : r.adopt(native));
  });
}
std::vector<communicator_handle> runtime_handle::adopt(
    const void* comm, std::size_t bytes,
    const std::vector<std::shared_ptr<queue_handle>>& queues) const {
  const auto all = queues_at(queues);
  return with_comm(comm, bytes, [&](auto native) {
    std::vector<communicator_handle> handles;
    for (communicator& c : alive(m_runtime).adopt(native, all)) handles.emplace_back(std::move(c));
    return handles;
  });
}
void runtime_handle::grow(const communicator_handle& members, const unique_id& id,
                          int joiners) const {
  alive(m_runtime).grow(*members.m_communicator, id, joiners);
}
void runtime_handle::shut_down() const {
  if (m_runtime) m_runtime->shut_down();
}
void runtime_handle::abandon() {
  // A runtime that ends with an exception waits for nothing.
  struct unwinding {
    std::shared_ptr<runtime> ends;
    ~unwinding() { ends.reset(); }
  };
  try {
    const unwinding now{std::move(m_runtime)};
    throw std::exception();
  } catch (const std::exception&) {
    m_runtime = nullptr;
  }
}

}  // namespace sucl::python
