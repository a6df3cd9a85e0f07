// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What exists once in a process: configuration, control plane, backends, the progress thread.
#pragma once

#include "base/config/config.hpp"
#include "core/communicator/communicator.hpp"
#include "core/control/finalize_barrier.hpp"
#include "core/control/registry.hpp"
#include "core/control/setup_steps.hpp"
#include "core/support/forked.hpp"
#include "process/progress_thread.hpp"
#include "tune/table.hpp"

#include <sucl/abi/bootstrap.h>

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace sucl::core {

/// Who makes progress, and so what is asked of MPI's thread level.
enum class threading {
  own,     ///< SuCL's thread besides the callers: MPI_THREAD_MULTIPLE
  callers  ///< only callers of blocking operations, as many at once as MPI's level lets them be;
           ///< not with the watchdog, which has a thread of its own
};

/// SuCL in this process, from start() to shut_down(). Communicators keep the object alive, so they
/// can find out that it has ended.
class SUCL_CORE_API process : public std::enable_shared_from_this<process> {
 public:
  /// Reads the configuration and starts the control plane and the backends. Collective over the
  /// job. Arguments may be null. errc::invalid_argument while another process object is running.
  static std::shared_ptr<process> start(int* argc, char*** argv);
  /// The same with everything at hand. Any number of these may run in a process: threads that play
  /// ranks have one each. `control` may be null.
  static std::shared_ptr<process> start(base::config settings, const sucl_bootstrap* control,
                                        threading threads = threading::own);
  ~process();

  /// All processes of the job, or those of an MPI communicator. Collective.
  std::shared_ptr<communicator> world(device_services device);
  std::shared_ptr<communicator> adopt(const void* native, std::uint64_t bytes,
                                      device_services device);
  /// A communicator on a group, which it takes over. Collective over the group.
  std::shared_ptr<communicator> make_communicator(sucl_group* group, device_services device);

  int rank() const { return m_rank; }
  int size() const { return m_size; }
  const base::config& settings() const { return m_settings; }
  registry& backends() { return *m_registry; }
  /// The tuning table, or null.
  const std::shared_ptr<const tune::table>& tuned() const { return m_tuned; }
  /// Throws errc::configuration if a table names a backend that the configuration does not know.
  void check_backends(const tune::table& t) const;
  /// The other processes of the job; null where there are none.
  peer_processes* peers() const { return m_peers.get(); }
  /// Where steps of set-up are begun.
  setup_steps& steps() { return m_steps; }
  /// All ranks of the job.
  std::vector<int> everyone() const;
  /// Null without an MPI library: a single process.
  const sucl_bootstrap* control() const { return m_control; }
  /// Library of the control plane, in one line, and why it was chosen.
  const std::string& control_description() const { return m_control_description; }
  /// Device memory is to be staged even where the host could read it.
  bool stages_everything() const { return m_settings.mpi.device_memory == "stage"; }

  /// A number for a new communicator, the same on all its ranks. Collective.
  std::uint64_t agree_on_id(const sucl_oob& oob, int size);

  /// Tells the engine that a communicator has work.
  void wake(communicator& c) { m_progress_thread.wake(c); }
  /// Has `work` called by threads of the program, again and again while they wait inside blocking
  /// calls, without any lock held: for what must go on meanwhile. Before the first communicator.
  void while_waiting(void (*work)()) { m_while_waiting = work; }
  void waiting() const {
    if (m_while_waiting) m_while_waiting();
  }
  /// The communicators that exist.
  std::vector<std::shared_ptr<communicator>> communicators();

  /// Waits for what is in flight and ends everything. Idempotent. Does not finalise MPI if an
  /// operation of this process was given up, or, with the watchdog, if another process has left
  /// that way or died: MPI would wait for ever.
  void shut_down();
  /// The same without waiting for anybody: everything in flight is given up.
  void abandon(const std::string& why);
  /// Something was given up that MPI may still be busy with, and the other ranks may look why.
  void note_failure(const error_info& why);
  bool alive() const { return !m_ended && !forked(); }
  /// A communicator has ended with a failure that no call has thrown. `thrown`: a command has, so
  /// that it is SYCL's to hand over. What nobody has heard of by the end is printed, and the
  /// process ends with a status other than 0.
  void note_unreported(const error_info& failure, bool thrown);
  /// Has `hand_over` called at the end, if commands have thrown: true if handlers have all now.
  void at_end(bool (*hand_over)()) { m_hand_over = hand_over; }
  /// The destructor of a communicator has done its work.
  void note_gone();

 private:
  process() = default;
  using problem = std::optional<error_info>;
  void begin(int* argc, char*** argv, problem wrong);
  void find_control_plane();
  void find_any_control_plane(const error_info& why);
  void start_control_plane(int* argc, char*** argv, problem wrong);
  void check_threads(const sucl_bootstrap_info& info) const;
  void meet_the_others(sucl_group* everyone, problem wrong);
  void compare_configurations(sucl_group* group);
  void load_tuning();
  void end_communicators();
  void report_at_exit();
  void finalise();

  base::config m_settings;
  std::shared_ptr<const tune::table> m_tuned;
  std::unique_ptr<registry> m_registry;
  const sucl_bootstrap* m_control = nullptr;
  threading m_threads = threading::own;
  bool m_only = false;  ///< the one that a program may have
  bool m_finalise = false;
  std::string m_control_reason = "given";
  std::string m_control_description = "none";
  std::unique_ptr<finalize_barrier> m_finalize_barrier;
  int m_rank = 0;
  int m_size = 1;
  progress_thread m_progress_thread{*this};
  std::shared_ptr<peer_processes> m_peers;
  setup_steps m_steps;
  void (*m_while_waiting)() = nullptr;
  bool (*m_hand_over)() = nullptr;
  std::mutex m_mutex;  ///< guards what follows
  std::vector<std::weak_ptr<communicator>> m_communicators;
  std::size_t m_existing = 0;  ///< communicators, also those whose destructor is at work
  std::condition_variable m_gone;
  std::vector<error_info> m_thrown;     ///< failures that commands have thrown, and no call
  std::atomic<std::uint64_t> m_ids{0};  ///< communicators numbered by this rank
  std::atomic<bool> m_broken{false};
  std::string m_obstacle = "an operation was given up";  ///< to finalising, if broken
  std::atomic<bool> m_ended{false};
};

}  // namespace sucl::core
