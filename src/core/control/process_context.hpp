// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the communicators of a process have in common.
#pragma once

#include "base/config/config.hpp"
#include "core/control/registry.hpp"
#include "core/exchange/core_services.hpp"
#include "core/failure/setup_steps.hpp"
#include "core/operation/call_totals.hpp"
#include "core/record/flight_recorder.hpp"
#include "tune/table/table.hpp"

#include <sucl/abi/bootstrap.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sucl::core {

class built_in_backend;
class communicator;
struct device_services;

/// A process as its communicators see it: its rank in the job, its settings and its backends, and
/// whom to call when something happens. `process` is the one implementation.
class SUCL_CORE_API process_context {
 public:
  virtual ~process_context() = default;
  process_context(const process_context&) = delete;
  process_context& operator=(const process_context&) = delete;

  int rank() const { return m_rank; }
  int size() const { return m_size; }
  const base::config& settings() const { return m_settings; }
  registry& backends() { return *m_registry; }
  /// The backends that are part of the library.
  const std::vector<const built_in_backend*>& built_ins() const { return *m_built_ins; }
  /// The tuning table, or null.
  const std::shared_ptr<const tune::table>& tuned() const { return m_tuned; }
  /// Throws errc::configuration if a table names a backend that the configuration does not know.
  void check_backends(const tune::table& t) const;
  /// The other processes of the job; null where there are none.
  peer_processes* peers() const { return m_peers.get(); }
  /// Where steps of set-up are begun.
  setup_steps& steps() { return m_steps; }
  /// The last operations of this rank.
  flight_recorder& record() { return m_record; }
  /// Whether ranks of several nodes compare what they have called. The same on every rank.
  bool compares_calls() const { return m_compares_calls; }
  /// Whether the ranks of communicators that have ended compare what they have called.
  bool compares_ends() const { return m_compares_ends; }
  /// Null without an MPI library: a single process.
  const sucl_bootstrap* control() const { return m_control; }
  /// Device memory is staged even where the host could read it.
  bool stages_everything() const { return m_settings.mpi.device_memory == "stage"; }
  /// What all its processes have in common, and no other job of these processes.
  std::uint64_t key() const { return m_key; }
  /// A number for a new communicator, the same on all its ranks. Collective.
  std::uint64_t agree_on_id(const sucl_oob& oob, int size);

  /// Has `work` called by threads of the program, again and again while they wait inside blocking
  /// calls, without any lock held: for what must go on meanwhile. Before the first communicator.
  void while_waiting(void (*work)()) { m_while_waiting = work; }
  void waiting() {
    if (m_while_waiting) m_while_waiting();
    if (m_polls_in_calls.load(std::memory_order_relaxed)) poll_in_call();
  }

  /// A communicator on a group, which it takes over. Collective over the group.
  virtual std::shared_ptr<communicator> make_communicator(sucl_group* group,
                                                          device_services device) = 0;
  /// A communicator has work for the progress thread.
  virtual void wake(communicator& c) = 0;
  /// Reports to the other ranks of a communicator, whose control messages are held, how it has
  /// failed on this one.
  virtual void notify_failure(communicator& c, const diagnosis& why) = 0;
  /// Reports to the ranks that do not see what this one publishes how it has ended a communicator.
  virtual void notify_end(communicator& c, const communicator_end& e) = 0;
  /// Has the watch thread poll control messages now.
  virtual void poll_now() = 0;
  /// MPI may still be busy with an operation that was given up, and other ranks may request the
  /// cause.
  virtual void note_failure(const error_info& why) = 0;
  /// A communicator that had failed has been shrunk: what was given up is no reason to end.
  virtual void note_recovered() = 0;
  /// A communicator has ended with a failure that no call has thrown. `thrown`: a command has, so
  /// that SYCL reports it. What nothing has reported by the end is printed, and the process ends
  /// with a status other than 0.
  virtual void note_unreported(const error_info& failure, bool thrown) = 0;
  /// A communicator of which ranks compare that has ended.
  virtual void note_calls(const ended_calls& c, const pair_log& pairs) = 0;
  /// The destructor of a communicator has done its work.
  virtual void note_destroyed() = 0;

 protected:
  /// What the progress thread does elsewhere, by a thread of the program that waits.
  virtual void poll_in_call() = 0;

  explicit process_context(const std::vector<const built_in_backend*>& built_ins)
      : m_built_ins(&built_ins) {}

  base::config m_settings;
  std::shared_ptr<const tune::table> m_tuned;
  std::unique_ptr<registry> m_registry;
  const sucl_bootstrap* m_control = nullptr;
  int m_rank = 0;
  int m_size = 1;
  std::uint64_t m_key = 0;
  bool m_compares_calls = false;
  bool m_compares_ends = false;
  std::atomic<bool> m_polls_in_calls{false};
  std::shared_ptr<peer_processes> m_peers;
  setup_steps m_steps;
  flight_recorder m_record;

 private:
  const std::vector<const built_in_backend*>* m_built_ins;
  void (*m_while_waiting)() = nullptr;
  std::atomic<std::uint64_t> m_ids{0};  ///< communicators numbered by this rank
};

}  // namespace sucl::core
