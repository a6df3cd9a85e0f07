// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// All that differs between SYCL implementations. It distinguishes two: those with host tasks
/// (DPC++ and the standard), in with_host_task.cpp, and AdaptiveCpp, which has custom operations
/// instead, in with_custom_operation.cpp.
#pragma once

#include "base/config/config.hpp"
#include "base/direct_cache.hpp"
#include "core/communicator/communicator.hpp"
#include "sycl/common/names.hpp"
#include "sycl/common/streams.hpp"

#include <sucl/detail/request.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sucl {
class communicator;
}

namespace sucl::sycl_layer {

/// Returns when the reductions by functions of the program are done that were issued on it: the
/// core does not know what they do after their last collective.
void await_user_ops(const communicator& of);

class communicator_state;
class gates;
class packed_memory;

/// One queue's device: where pointers point, and copies for staging.
class device : public std::enable_shared_from_this<device> {
 public:
  device(const ::sycl::queue& queue, const base::config& settings);
  ~device();

  const core::self_description& self() const { return m_self; }
  core::device_copier* copier() {
    return m_self.device_memory_on_host && !m_stages ? nullptr : &m_copier;
  }

  /// Whether the device is the host's own processor. Its buffers never move, so access for writing
  /// costs nothing more there.
  bool is_host() const { return m_is_host; }

  /// The kind of memory that a pointer refers to, for a backend: memory that the host can read is
  /// never "device". Throws invalid_memory for memory of another context.
  sucl_memory classify(const void* pointer) const;
  /// Whether an answer for a pointer may be used again.
  bool remembers() const { return m_remembers; }
  /// The kind of memory that buffers are in when an operation gets at them.
  sucl_memory buffer_memory() const {
    return m_self.device_memory_on_host ? SUCL_MEMORY_SYSTEM : SUCL_MEMORY_DEVICE;
  }

  /// What this device gives to the core's communicator.
  core::device_services services();

  /// The tracker of a device with native streams; else null.
  stream_tracker* streams() { return m_streams.get(); }
  /// The packed memory of a device with native streams and kernels; else null.
  packed_memory* packed() { return m_packed.get(); }
#ifdef SYCL_IMPLEMENTATION_ACPP
  /// The gates of a device with native streams; else null.
  sycl_layer::gates* gate() { return m_gates.get(); }
#endif

 private:
  sucl_memory query_kind(const void* pointer) const;
  static void* start_copy(void* self, void* to, const void* from, std::size_t bytes);
  static bool test_copy(void* self, void* token);

  ::sycl::context m_context;
  ::sycl::queue m_copies;  ///< a queue of its own: the user's may wait for the operation
  std::vector<::sycl::context> m_other_contexts;
  /// Where a stale answer does no harm: the host reads everything, and no rule depends on kinds.
  bool m_remembers = false;
  /// Answers of classify(): the pointer above its kind plus one.
  mutable base::direct_cache<std::atomic<std::uint64_t>, 64> m_known_pointers{};
  core::self_description m_self;
  bool m_stages = false;
  bool m_is_host = false;
  bool m_asks_driver = false;  ///< where pointers point
  core::device_copier m_copier;
  std::unique_ptr<stream_tracker> m_streams;
  std::unique_ptr<core::kernel_device> m_kernels;
  std::unique_ptr<core::hierarchical_queue> m_hierarchical;
  std::unique_ptr<pinned_memory> m_pinned;
  std::unique_ptr<packed_memory> m_packed;
#ifdef SYCL_IMPLEMENTATION_ACPP
  std::shared_ptr<sycl_layer::gates> m_gates;  ///< those of the device
#endif
  int m_number = 0;                               ///< of the device, where it has native streams
  const core::device_errors* m_errors = nullptr;  ///< the same
};

/// Where a record refers to a buffer.
struct buffer_operand {
  std::size_t part = 0;  ///< of a group
  bool is_send = false;
  std::size_t start = 0;  ///< bytes from the start of the buffer to what the record points at
};

/// A buffer that an operation uses, and what for. Not to be kept until the operation is done: the
/// user's last handle of a buffer must be the last one, because its destructor waits and writes
/// back.
struct buffer_use {
  ::sycl::buffer<std::byte, 1> buffer;
  bool writes = false;
  bool discards = false;  ///< all of it is overwritten
  buffer_operand operand;
  ::sycl::range<3> extents{1, 1, 1};  ///< of the program's buffer; the last of them in bytes
};

/// Where kernels and steps go, one after the other, and the last one's event: what the `target` of
/// kernel_device::launch() and hierarchical_queue::start() is.
struct launch_target {
  ::sycl::queue& queue;
  std::vector<::sycl::event> deps;
  const std::vector<buffer_use>& buffers;
  ::sycl::event done;
};

/// Starts an operation asynchronously: after `deps`, after earlier work of an in-order queue, and
/// after earlier commands on its buffers. The returned event means done, and later commands on the
/// queue, if in order, and on the buffers wait for it. `blocking`: for a blocking call.
::sycl::event start(communicator_state& state, ::sycl::queue& queue, const sucl_operation& record,
                    const core::layouts& layout, const std::vector<buffer_use>& buffers,
                    const std::vector<::sycl::event>& deps, bool blocking = false);

#ifndef SYCL_IMPLEMENTATION_ACPP  // whose custom operations cost more than what this saves
/// The same for a call that has been issued before with the same arguments, which are pointers to
/// contiguous memory, without dependencies and on the communicator's queue, out of order; nothing
/// if it is not known. `requested`: the whole call, as it came.
std::optional<::sycl::event> start_cached(communicator_state& state,
                                          const sucl_operation& requested);
/// The same for a caller that keeps the call.
::sycl::event start_cached(communicator_state& state, core::persistent_call& call);
#endif

/// Waits for earlier commands on the buffers, runs the operation in this thread, and gives the
/// buffers back. What else it waits for has been waited for.
void run_now(communicator_state& state, sucl_operation& record, std::vector<sucl_operation>& parts,
             const core::layouts& layout, const std::vector<buffer_use>& buffers);

/// While it lives its thread is inside a function of the program that a reduction calls.
class function_scope {
 public:
  function_scope() noexcept;
  ~function_scope();
  function_scope(const function_scope&) = delete;
  function_scope& operator=(const function_scope&) = delete;
};
/// Throws errc::invalid_argument inside such a function: what it calls would wait for the
/// reduction, which waits for the function, and a wait for a queue has no timeout.
void throw_if_in_function();

/// A queue of the library's own, on the device of another one. Errors that the runtime reports to
/// it are logged: without a handler they would end the program, and AdaptiveCpp hands a thread that
/// ends a queue the errors of all others too, as of an allocation that the program has seen to
/// fail.
::sycl::queue own_queue(const ::sycl::queue& like, bool in_order);

/// Has such a queue take the errors that a call of this library has caused, and seen: AdaptiveCpp
/// keeps those of allocations for a handler of the program otherwise, or ends the program.
void take_errors(::sycl::queue& own);

/// Whether nothing that was submitted to an in-order queue is still to be done.
bool idle(const ::sycl::queue& queue);

/// Waits for an event, or for everything of an in-order queue. Where something may interrupt the
/// thread's waits it polls, as a wait in SYCL cannot be given up, and may throw what
/// core::throw_if_interrupted() does.
void await_event(const ::sycl::event& event);
void await_idle(const ::sycl::queue& queue);

/// Whether all events are complete.
bool complete(const std::vector<::sycl::event>& events);
/// The event of an operation that is done: that of a command where events have timings.
::sycl::event event_of_done(::sycl::queue& queue);

/// The SYCL runtime has refused the command of an operation that is issued, which can be neither
/// started nor taken back: the communicator ends.
[[noreturn]] void refuse_command(communicator_state& state, const sucl_operation& record,
                                 const char* why);

/// Writes the address of a buffer into the record, or the part of a group, that uses it.
void set_addresses(sucl_operation& record, std::vector<sucl_operation>& parts,
                   const buffer_operand& operand, void* address);
/// Notes that it is host memory.
void set_memory(sucl_operation& record, std::vector<sucl_operation>& parts,
                const buffer_operand& operand);

}  // namespace sucl::sycl_layer
