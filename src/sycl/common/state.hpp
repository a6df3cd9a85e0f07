// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What libsucl adds to a communicator of the core: its queue and device.
#pragma once

#include "core/communicator/communicator.hpp"
#include "core/exchange/waiting.hpp"
#include "process/process.hpp"
#include "sycl/common/implementation.hpp"
#include "sycl/common/pending_copies.hpp"

#include <sucl/communicator.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace sucl::sycl_layer {

/// For good: in a forked child nothing of the parent's may end.
template <class T>
void keep(T&& what) {
  new std::remove_reference_t<T>(std::forward<T>(what));
}

/// Calls the handlers for what commands have thrown: of commands in flight and of those that have
/// failed. False where that cannot be.
bool hand_over_exceptions();

class recordings;

/// One communicator of the API.
class communicator_state : public std::enable_shared_from_this<communicator_state> {
 public:
  /// Without a queue, or with one.
  communicator_state(std::shared_ptr<core::process> owner, std::optional<::sycl::queue> queue);
  /// The state of a communicator that works for another one, on its device, and is given only what
  /// start() needs.
  communicator_state(std::shared_ptr<device> on, std::shared_ptr<core::communicator> part)
      : m_device(std::move(on)), m_core(std::move(part)) {}
  communicator_state(const communicator_state&) = delete;
  communicator_state& operator=(const communicator_state&) = delete;
  ~communicator_state() {
    if (!core::forked()) {
      // A thread of SuCL's may let go of the core's communicator last, and end it.
      if (m_core && std::uncaught_exceptions() > 0) m_core->note_unwinding();
      return;
    }
    keep(std::move(m_core));
    keep(std::move(m_device));
    keep(std::move(m_process));
  }

  const std::shared_ptr<core::process>& process() const { return m_process; }
  core::communicator& core() const { return *m_core; }
  void set_core(std::shared_ptr<core::communicator> c);
  bool has_core() const { return m_core != nullptr; }
  /// What the core gets of the device.
  core::device_services services();

  const std::optional<::sycl::queue>& queue() const { return m_queue; }
  device* on_device() { return m_device.get(); }
  const device* on_device() const { return m_device.get(); }

  /// Whether a call that has been right once is right again: the kinds of memory do not matter, and
  /// there is no queue to wait for.
  bool repeats() const { return m_repeats; }
  /// The same for a call that returns an event, which need not be one of a command.
  bool repeats_events() const { return m_repeats_events; }

  /// Whether this process has other ranks of the communicator.
  bool shares_process() const { return m_shares_process; }

  /// The events of the operations that were issued last; used under the issuer's own order.
  ::sycl::event& last_collective() { return m_last_collective; }
  ::sycl::event& last_message() { return m_last_message; }

  sycl_layer::pending_copies& copies() { return m_copies; }
  /// Waits for every operation issued so far, and for what streams do once one is done.
  void wait_all() {
    m_core->wait_all();
    m_copies.wait([this] {
      m_core->check();
      core::throw_if_interrupted();
    });
  }

  /// What it has recorded; null: nothing yet.
  std::shared_ptr<recordings>& recorded() { return m_recorded; }
  /// The one that shrink() makes of it, until that returns.
  std::shared_ptr<communicator_state>& shrunk() { return m_shrunk; }
  /// The last replay of an executable.
  ::sycl::event& last_replay() { return m_last_replay; }

 private:
  std::shared_ptr<core::process> m_process;
  std::optional<::sycl::queue> m_queue;
  std::shared_ptr<device> m_device;  ///< null without a queue; the core's communicator keeps it
  std::shared_ptr<core::communicator> m_core;
  bool m_repeats = true;
  bool m_repeats_events = true;
  bool m_shares_process = false;
  ::sycl::event m_last_collective;
  ::sycl::event m_last_message;
  pending_copies m_copies;
  std::shared_ptr<recordings> m_recorded;
  std::shared_ptr<communicator_state> m_shrunk;
  ::sycl::event m_last_replay;
};

/// One with what the core gets of its device; null if that cannot be had, which the services
/// say.
std::shared_ptr<communicator_state> make_state(const std::shared_ptr<core::process>& owner,
                                               const std::optional<::sycl::queue>& queue,
                                               core::device_services& services);

/// The runtime of the API.
class runtime_state {
 public:
  /// On the processes of `over`, of a job that `given` says where to find, or of the launcher's.
  runtime_state(int* argc, char*** argv, core::native_group over = {},
                std::optional<core::launch> given = std::nullopt)
      : m_process(core::process::start(argc, argv, over, std::move(given))) {
    m_process->at_end(hand_over_exceptions);
  }
  runtime_state(const runtime_state&) = delete;
  runtime_state& operator=(const runtime_state&) = delete;
  ~runtime_state() {
    if (core::forked()) {
      keep(std::move(m_process));
      return;
    }
    // While an exception ends the program others may wait for this rank, and it for them.
    if (std::uncaught_exceptions() > m_exceptions)
      m_process->abandon("destroyed during stack unwinding");
    else
      m_process->shut_down();
  }
  core::process& process() const { return *m_process; }

  communicator world(const ::sycl::queue* queue);
  communicator adopt(const void* native, std::size_t bytes, const ::sycl::queue* queue);
  /// A rank for each queue, of the whole job or of an MPI communicator.
  std::vector<communicator> ranks(const std::vector<::sycl::queue>& queues,
                                  core::native_group over);

 private:
  std::shared_ptr<core::process> m_process;
  int m_exceptions = std::uncaught_exceptions();  ///< when it began
};

}  // namespace sucl::sycl_layer
