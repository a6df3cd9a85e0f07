// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Requests that SuCL completes, among those of the MPI library.
#pragma once

#include "core/communicator/communicator.hpp"
#include "interposer/arguments/transfer.hpp"
#include "interposer/requests/progress_thread.hpp"

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace sucl::interposer {

struct call_class;
struct persistent_slot;
struct comm_state;

class stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - m_begin).count();
  }

 private:
  std::chrono::steady_clock::time_point m_begin = std::chrono::steady_clock::now();
};

/// A request that SuCL knows: one that it completes, or one of the library's that a measurement
/// times.
///
/// The handle of one that SuCL completes is a persistent request of the library's own that is never
/// started, so it is a valid one and like no other.
struct pending {
  enum class by { none, sucl, library };

  MPI_Request handle = MPI_REQUEST_NULL;
  bool persistent = false;
  bool at_library = false;          ///< persistent: the library has made the latest start
  by completed_by = by::none;       ///< none: it is not active
  MPI_Comm native = MPI_COMM_NULL;  ///< as the next one under the lock
  comm_state* with = nullptr;       ///< null once the communicator is gone
  std::shared_ptr<core::communicator> core;
  core::ticket operation;
  std::uint64_t before = 0;  ///< as interposer::calls_before(), when it was issued
  bool done_at_once = false;
  transfer what;
  std::shared_ptr<device::staged_memory> staged;  ///< what the library has for a device's memory
  std::shared_ptr<persistent_slot> on;            ///< of a persistent one
  int early = 0;                       ///< persistent, made before the set-up: which one, from 1
  std::uint64_t starts = 0, from = 0;  ///< of such a one by the library, which has those before
  call_class* measured = nullptr;      ///< whose measurement this start belongs to
  std::uint64_t number = 0;
  double spent = 0;  ///< seconds in calls for it
  std::mutex delivery;
  bool delivered = false;     ///< under that lock: the results are in the program's memory
  int outcome = MPI_SUCCESS;  ///< of that

  bool own() const { return completed_by == by::sucl; }
  bool active() const { return completed_by != by::none; }
  /// The library must not see the handle, which it has never started. Not every library takes such
  /// a request for inactive.
  bool hidden() const { return persistent ? !at_library : own(); }
  bool done() const { return done_at_once || operation.done(); }
};

/// All of them. Any thread.
class requests {
 public:
  requests() : m_progress_thread(*this) {}

  /// Whether SuCL has operations under way.
  bool any_own() const { return m_own_count.load(std::memory_order_acquire) > 0; }
  /// Whether there may be any: if not, a call with requests is the library's alone.
  bool any_known() const { return m_known.load(std::memory_order_acquire) > 0; }
  /// The one of this handle that is active or persistent, or null.
  pending* known(MPI_Request handle);
  /// The persistent one of this handle, or null.
  pending* prepared(MPI_Request handle);

  /// A new one with a handle; null if MPI has none.
  pending* take();
  /// One that was not activated.
  void give_back(pending& r);
  /// A persistent one, whose handle is the library's; `fill` says what it is.
  void add_persistent(MPI_Request handle, const std::function<void(pending&)>& fill);
  /// Those of a communicator that were made before SuCL was set up for it, in order.
  std::vector<pending*> early_of(const comm_state& p);
  /// The communicator whose error handler hears of it.
  MPI_Comm native_of(const pending& r) {
    const std::lock_guard lock(m_mutex);
    return r.native;
  }
  /// Takes one out that is not active, or that the library completes; null if there is none. The
  /// measurement that it belongs to gets no time.
  std::unique_ptr<pending> remove(MPI_Request handle);
  /// Puts it back.
  void restore(std::unique_ptr<pending> r);
  /// The library is about to be asked for one that it completes: it may give the handle to another
  /// thread before this one knows. Then attach(), or close() if it is over.
  void detach(pending& r);
  void attach(pending& r);
  /// It has started, or is over: of what is not persistent the handle is free again.
  void activate(pending& r, pending::by who);
  /// Returns the communicator if the program has freed it and this was its last operation.
  std::shared_ptr<core::communicator> close(pending& r);

  /// Keeps host memory that the library has for a device's until its request has completed. False
  /// if it has by now.
  bool keep(MPI_Request handle, MPI_Comm native,
            const std::shared_ptr<device::staged_memory>& staged);
  /// Notes a request of the library that belongs to a measurement, and what its start took.
  void watch(MPI_Request handle, call_class& c, std::uint64_t number, double seconds);

  /// Progresses all that SuCL completes, unless another thread is at it.
  void progress();
  /// The program itself makes their progress at the moment.
  void program_made_progress() { m_progress_thread.program_made_progress(); }
  /// The program has freed the communicator. False if operations on it are still under way: the
  /// last close() returns it then.
  bool forget(comm_state& p, MPI_Comm replacement);
  /// Gives handles back to MPI, and ends the thread. Whether there are operations still, which are
  /// done by now.
  bool stop();

  /// Guards the trials of calls that do not wait, what a request has of its communicator, which
  /// another thread may free, and who uses a persistent_slot.
  std::mutex& lock() { return m_mutex; }

 private:
  pending* find(MPI_Request handle);
  pending& add_of_library(MPI_Request handle);
  bool has_own_on(const core::communicator* core) const;
  std::vector<std::unique_ptr<pending>>::iterator find_detached(const pending& r);

  std::atomic<int> m_known{0};      ///< persistent, or active
  std::atomic<int> m_own_count{0};  ///< of m_own
  std::mutex m_mutex;               ///< guards what follows
  std::unordered_map<std::uint64_t, std::unique_ptr<pending>> m_all;
  std::vector<std::unique_ptr<pending>> m_detached;
  std::vector<pending*> m_free;
  std::vector<pending*> m_own;                                ///< active, completed by SuCL
  std::vector<std::shared_ptr<core::communicator>> m_ending;  ///< freed, with some of those
  bool m_stopped = false;
  progress_thread m_progress_thread;
};

}  // namespace sucl::interposer
