// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "base/log.hpp"
#include "core/exchange/waiting.hpp"
#include "core/failure/device_errors.hpp"
#include "core/support/backoff.hpp"
#include "sycl/buffers/packing.hpp"
#include "sycl/common/adaptivecpp.hpp"
#include "sycl/common/pointer_kind.hpp"
#include "sycl/common/state.hpp"
#include "sycl/completion/gate.hpp"
#include "sycl/rtc/kernel_launcher.hpp"
#include "sycl/rtc/step_launcher.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

namespace sucl::sycl_layer {
namespace {

// Whether the host can read through a pointer, found out without a fault: a system call that is
// given a bad address fails instead.
bool readable_by_host(const void* pointer) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  const bool readable = ::write(ends[1], pointer, 1) == 1;
  ::close(ends[0]);
  ::close(ends[1]);
  return readable;
}

bool host_reads_device_memory(const ::sycl::queue& queue) {
  if (queue.get_device().is_cpu()) return true;
  void* probe = ::sycl::malloc_device(64, queue);
  if (!probe) return false;
  const bool readable = readable_by_host(probe);
  ::sycl::free(probe, queue);
  return readable;
}

#ifdef SYCL_IMPLEMENTATION_ACPP
// Of other devices than the host's: to its own every pointer belongs. Memory of several GPUs is
// one.
std::vector<::sycl::context> contexts_besides(const ::sycl::context& own) {
  std::vector<::sycl::context> others;
  if (!own.get_devices().front().is_cpu()) return others;
  for (const auto& platform : ::sycl::platform::get_platforms()) {
    const auto devices = platform.get_devices();
    if (!devices.empty() && !devices.front().is_cpu()) others.emplace_back(devices);
  }
  return others;
}

// The host reads all other memory of theirs. CUDA's driver is asked where there is one, as a
// question to its runtime may make a context on the GPU.
bool belongs_to(const void* pointer, const ::sycl::context& context) {
  if (backend_name(context.get_devices().front()).find("cuda") != std::string::npos)
    return memory_by_driver(pointer) == SUCL_MEMORY_DEVICE;
  return ::sycl::get_pointer_type(pointer, context) == ::sycl::usm::alloc::device;
}
#else
std::vector<::sycl::context> contexts_besides(const ::sycl::context& own) {
  std::vector<::sycl::context> others;
  for (const auto& platform : ::sycl::platform::get_platforms()) {
    if (platform.get_devices().empty()) continue;
#ifdef SYCL_KHR_DEFAULT_CONTEXT
    const auto context = platform.khr_get_default_context();
#else
    const auto context = platform.ext_oneapi_get_default_context();
#endif
    if (context != own) others.push_back(context);
  }
  return others;
}

bool belongs_to(const void* pointer, const ::sycl::context& context) {
  return ::sycl::get_pointer_type(pointer, context) != ::sycl::usm::alloc::unknown;
}
#endif

void refuse_memory_of(const std::vector<::sycl::context>& others, const void* pointer) {
  for (const auto& context : others)
    if (belongs_to(pointer, context))
      base::fail(errc::invalid_memory,
                 "the pointer belongs to a context of platform " +
                     context.get_platform().get_info<::sycl::info::platform::name>() +
                     ", not to that of the communicator's queue",
                 "Allocate with the queue that the communicator was made with");
}

// Copies of operations that go through the host stand behind nothing of the user's.
::sycl::queue queue_for_copies(const ::sycl::queue& of) {
  return own_queue(of, has_native_streams(of.get_device()));
}

#ifdef SYCL_IMPLEMENTATION_ACPP
// How many queues have no stream, as far as no handler has been told yet: AdaptiveCpp makes a queue
// also where the device has no memory for its stream, notes an error, and loses what comes there.
int count_missing_streams() {
  int missing = 0;
  ::hipsycl::rt::application::errors().for_each_error([&](const ::hipsycl::rt::result& e) {
    missing += e.what().find("construct backend stream") != std::string::npos;
  });
  return missing;
}

[[noreturn]] void refuse_without_stream(const ::sycl::device& d) {
  const bool is_hip = d.get_backend() == ::sycl::backend::hip;
  if (const auto fault = core::device_errors::of(is_hip, native_number(d)).pending())
    throw error(*fault);
  base::fail(errc::out_of_memory, "the device has no memory for a stream",
             "Free memory of the device first, or make fewer communicators");
}
#endif

}  // namespace

void take_errors([[maybe_unused]] ::sycl::queue& own) {
#ifdef SYCL_IMPLEMENTATION_ACPP
  own.throw_asynchronous();
#endif
}

::sycl::queue own_queue(const ::sycl::queue& like, bool in_order) {
  const auto report = [](const ::sycl::exception_list& errors) {
    for (const auto& e : errors) {
      try {
        std::rethrow_exception(e);
      } catch (const std::exception& x) {
        base::log(base::log_level::warn, "sycl", "the SYCL runtime reports: ", x.what());
      }
    }
  };
  if (!in_order) return ::sycl::queue(like.get_context(), like.get_device(), report);
#ifdef SYCL_IMPLEMENTATION_ACPP
  const int missing_before = count_missing_streams();
#endif
  ::sycl::queue made(like.get_context(), like.get_device(), report,
                     ::sycl::property_list{::sycl::property::queue::in_order()});
#ifdef SYCL_IMPLEMENTATION_ACPP
  if (count_missing_streams() > missing_before) refuse_without_stream(like.get_device());
#endif
  take_errors(made);
  return made;
}

device::device(const ::sycl::queue& queue, const base::config& settings)
    : m_context(queue.get_context()),
      m_copies(queue_for_copies(queue)),
      m_other_contexts(contexts_besides(queue.get_context())),
      m_stages(settings.mpi.device_memory == "stage"),
      m_is_host(queue.get_device().is_cpu()) {
  const auto d = queue.get_device();
  m_self.implementation = implementation_name();
  m_self.sycl_backend = backend_name(d);
  m_self.platform = base::platform_name(settings, this_implementation, m_self.sycl_backend);
  if (m_self.platform.empty()) m_self.platform = m_self.sycl_backend;
  m_self.device = d.get_info<::sycl::info::device::name>();
  m_self.device_memory_on_host = host_reads_device_memory(queue);
  m_copier = {this, start_copy, test_copy};
  m_remembers = m_self.device_memory_on_host && !m_stages &&
                std::all_of(settings.rules.begin(), settings.rules.end(), [](const base::rule& r) {
                  return r.memories == std::vector<std::string>{"*"};
                });
  if (!has_native_streams(d)) {
    if (has_kernels_for(d)) m_kernels = std::make_unique<kernel_launcher>(queue, nullptr);
    return;
  }
  m_number = native_number(d);
  m_errors =
      &core::device_errors::of(m_self.sycl_backend.find("hip") != std::string::npos, m_number);
  m_streams = std::make_unique<stream_tracker>(settings.watchdog.timeout.count() > 0);
  m_hierarchical = std::make_unique<step_launcher>(*this);
  m_pinned = std::make_unique<pinned_memory>(m_copies);
  m_kernels = std::make_unique<kernel_launcher>(queue, m_streams.get());
  if (has_kernels_for(d)) m_packed = std::make_unique<packed_memory>(queue);
  m_asks_driver =
      !m_self.device_memory_on_host && backend_name(d).find("cuda") != std::string::npos;
#ifdef SYCL_IMPLEMENTATION_ACPP
  m_gates = sycl_layer::gates::of(queue);
#endif
}

core::device_services device::services() {
  core::device_services s;
  s.self = m_self;
  s.copier = copier();
  s.kernels = m_kernels.get();
  if (!m_streams) return s;
  s.native_device = &m_number;
  s.hierarchical = m_hierarchical.get();
  s.errors = m_errors;
  s.streams = {m_streams.get(),
               [](void* t) { return static_cast<stream_tracker*>(t)->pending_since(); },
               [](void* t) { return static_cast<stream_tracker*>(t)->unfinished(); },
               [](void* t) { return static_cast<stream_tracker*>(t)->is_held(); },
               [](void* t) { static_cast<stream_tracker*>(t)->drain(); }};
  s.memory_context = m_pinned.get();
  s.allocate = [](void* memory, std::size_t bytes) {
    return static_cast<pinned_memory*>(memory)->take(bytes);
  };
  s.free = [](void*, void*) {};  // all of it at the end
  return s;
}

device::~device() = default;

sucl_memory device::classify(const void* pointer) const {
  if (!pointer) return SUCL_MEMORY_SYSTEM;
  if (!m_remembers) return query_kind(pointer);
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  auto& known = m_known_pointers.slot(address);
  const auto entry = known.load(std::memory_order_relaxed);
  if (entry >> 3 == address) return static_cast<sucl_memory>((entry & 7) - 1);
  const auto kind = query_kind(pointer);
  known.store(address << 3 | static_cast<std::uint64_t>(kind + 1), std::memory_order_relaxed);
  return kind;
}

sucl_memory device::query_kind(const void* pointer) const {
  // Memory of another CUDA device of this process is device memory too, as SYCL says.
  if (m_asks_driver)
    if (const auto kind = memory_by_driver(pointer)) return *kind;
#ifdef SYCL_IMPLEMENTATION_ACPP
  refuse_memory_of(m_other_contexts, pointer);
#endif
  switch (::sycl::get_pointer_type(pointer, m_context)) {
    case ::sycl::usm::alloc::host: return SUCL_MEMORY_HOST;
    case ::sycl::usm::alloc::shared: return SUCL_MEMORY_SHARED;
    case ::sycl::usm::alloc::device:
      return m_self.device_memory_on_host && !m_stages ? SUCL_MEMORY_HOST : SUCL_MEMORY_DEVICE;
    default: break;
  }
#ifndef SYCL_IMPLEMENTATION_ACPP
  refuse_memory_of(m_other_contexts, pointer);
#endif
  return SUCL_MEMORY_SYSTEM;
}

void* device::start_copy(void* self, void* to, const void* from, std::size_t bytes) {
  auto& d = *static_cast<device*>(self);
  auto* copy = new ::sycl::event(d.m_copies.memcpy(to, from, bytes));
#ifdef SYCL_IMPLEMENTATION_ACPP
  flush();
#endif
  return copy;
}

bool device::test_copy(void*, void* token) {
  auto* event = static_cast<::sycl::event*>(token);
  if (event->get_info<::sycl::info::event::command_execution_status>() !=
      ::sycl::info::event_command_status::complete)
    return false;
  delete event;
  return true;
}

namespace {

template <class Done>
void poll_until(const Done& is_done) {
#ifdef SYCL_IMPLEMENTATION_ACPP
  flush();
#endif
  core::backoff rest(0);
  while (!is_done()) {
    core::throw_if_interrupted();
    rest.after(0);
  }
}

}  // namespace

// The wait at the end throws what SYCL has found.
void await_event(const ::sycl::event& event) {
  if (core::current_interrupter()) poll_until([&] { return complete({event}); });
  ::sycl::event(event).wait();
}

void await_idle(const ::sycl::queue& queue) {
  if (core::current_interrupter()) poll_until([&] { return idle(queue); });
  ::sycl::queue(queue).wait();
}

bool complete(const std::vector<::sycl::event>& events) {
  for (const auto& e : events)
    if (e.get_info<::sycl::info::event::command_execution_status>() !=
        ::sycl::info::event_command_status::complete)
      return false;
  return true;
}

void set_addresses(sucl_operation& record, std::vector<sucl_operation>& parts,
                   const buffer_operand& operand, void* address) {
  sucl_operation& target = parts.empty() ? record : parts[operand.part];
  void* start = static_cast<std::byte*>(address) + operand.start;
  if (operand.is_send)
    target.send = start;
  else
    target.recv = start;
}

void set_memory(sucl_operation& record, std::vector<sucl_operation>& parts,
                const buffer_operand& operand) {
  sucl_operation& target = parts.empty() ? record : parts[operand.part];
  (operand.is_send ? target.send_memory : target.recv_memory) = SUCL_MEMORY_SYSTEM;
}

void refuse_command(communicator_state& state, const sucl_operation& record, const char* why) {
  error_info info;
  info.code = errc::native;
  info.message = std::string("SYCL refused the command of an operation: ") + why;
  info.hint = "The communicator cannot be used any more";
  info.operation = core::describe(record);
  state.core().fail_all(info);
  throw error(info);
}

}  // namespace sucl::sycl_layer
