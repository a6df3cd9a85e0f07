// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What exists once in a process: configuration, control plane, backends, the progress thread.
#pragma once

#include "base/config/config.hpp"
#include "core/communicator/communicator.hpp"
#include "core/control/launch.hpp"
#include "core/control/process_context.hpp"
#include "core/control/registry.hpp"
#include "core/failure/finalize_barrier.hpp"
#include "core/failure/setup_steps.hpp"
#include "core/support/forked.hpp"
#include "core/watch/watch_thread.hpp"
#include "process/end_comparison.hpp"
#include "process/progress_thread.hpp"
#include "tune/table/table.hpp"

#include <sucl/abi/bootstrap.h>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sucl::core {

/// Who makes progress, and so what is asked of MPI's thread level.
enum class threading {
  own,     ///< SuCL's thread besides the callers: MPI_THREAD_MULTIPLE
  callers  ///< only callers of blocking operations, as many at once as MPI's level lets them be;
           ///< not with the watchdog, which has a thread of its own
};

/// A communicator of the control plane's library (MPI: an MPI_Comm) as bytes; null: all processes
/// of the library.
struct native_group {
  const void* handle = nullptr;
  std::uint64_t bytes = 0;
};

/// SuCL in this process, from start() to shut_down(). Communicators keep the object alive, so they
/// can find out that it has ended.
class SUCL_CORE_API process final : public process_context,
                                    public std::enable_shared_from_this<process> {
 public:
  /// Reads the configuration and starts the control plane and the backends. Collective over the
  /// job, which is the processes of `over`, that of `given`, or that of the launcher. Arguments may
  /// be null. Only one object may run whose job is all processes: errc::invalid_argument; any
  /// number with others.
  static std::shared_ptr<process> start(int* argc, char*** argv, native_group over = {},
                                        std::optional<launch> given = std::nullopt);
  /// The same with everything at hand. Any number of these may run in a process: threads that play
  /// ranks have one each. `control` may be null.
  static std::shared_ptr<process> start(base::config settings, const sucl_bootstrap* control,
                                        threading threads = threading::own);
  ~process();

  /// Several ranks for each process, in a job of their own: `count` of this one, at least one.
  /// Collective over all processes of the job, or over those of an MPI communicator, which have to
  /// be in it. Returns one object for each rank of this process, which thread for thread can be
  /// used as that of a process; this object itself where every process has one rank. They end with
  /// this object, or when nothing refers to them at the next call.
  std::vector<std::shared_ptr<process>> start_ranks(std::size_t count, native_group over = {});

  /// All processes of the job, or those of an MPI communicator, which have to be in the job.
  /// Collective.
  std::shared_ptr<communicator> world(device_services device);
  std::shared_ptr<communicator> adopt(const void* native, std::uint64_t bytes,
                                      device_services device);
  std::shared_ptr<communicator> make_communicator(sucl_group* group,
                                                  device_services device) override;

  /// All ranks of the job.
  std::vector<int> everyone() const;
  /// A step of set-up: its label, which is the same on all of its members and another one for
  /// others, and these, which are none where the control plane does not know them.
  struct step_scope {
    std::string label;
    std::vector<int> members;
  };
  /// That of `call` over the processes of an MPI communicator.
  step_scope step_over(native_group over, const std::string& call) const;
  /// Whether operations go on outside of calls. Not where the program has initialised MPI for less
  /// than MPI_THREAD_MULTIPLE, on this rank or another one.
  bool has_own_thread() const { return m_threads == threading::own; }
  /// Library of the control plane, in one line, and why it was chosen.
  const std::string& control_description() const { return m_control_description; }
  /// The communicators that something refers to.
  std::vector<std::shared_ptr<communicator>> communicators();
  /// Calls `each` for those that exist, also while they end, one after another. The program may let
  /// go of any meanwhile, which then ends where it does.
  void for_each_communicator(const std::function<void(const std::shared_ptr<communicator>&)>& each);

  /// Whether a job of more than one rank runs that the program has started.
  static bool any_runs();
  /// exit() was called: those of the program that have not ended show the others of their jobs that
  /// they leave, unless they may still end: all have been destroyed that will be, `at_end`. Whether
  /// a launcher waits for the end of one.
  static bool leave_all(bool at_end);
  /// Whether exit() does not destroy the object that the program has of it.
  void note_on_stack(bool on_stack) { m_on_stack = on_stack; }

  /// Waits for what is in flight and ends everything. Idempotent. Does not finalise MPI if an
  /// operation of this process was given up, or, with the watchdog, if another process has left
  /// that way or died: MPI would wait for ever.
  void shut_down();
  /// The same without waiting for peers: everything in flight is given up.
  void abandon(const std::string& why);
  bool alive() const { return !m_ended && !forked(); }
  /// Has `hand_over` called at the end, if commands have thrown: true if handlers have all now.
  void at_end(bool (*hand_over)()) { m_hand_over = hand_over; }
  void wake(communicator& c) override;
  void notify_failure(communicator& c, const diagnosis& why) override;
  void notify_end(communicator& c, const communicator_end& e) override;
  void poll_now() override;
  void note_failure(const error_info& why) override;
  void note_recovered() override;
  void note_unreported(const error_info& failure, bool thrown) override;
  void note_calls(const ended_calls& c, const pair_log& pairs) override { m_ends->note(c, pairs); }
  void note_destroyed() override;

 private:
  process();
  void poll_in_call() override;
  bool leave();
  struct rank_start;
  void begin_as_rank(const process& owner, rank_start&& from);
  void show_to_local_ranks();
  rank_start exchange_rank_counts(sucl_group* over, std::size_t count) const;
  static std::uint64_t random_key();
  void end_ranks(const std::function<void(process&)>& how);
  sucl_group* group_of(native_group over, const std::string& call) const;
  void check_same_call(sucl_group* group, const std::string& call) const;
  void check_adoption() const;
  using problem = std::optional<error_info>;
  void begin(int* argc, char*** argv, problem wrong);
  void find_control_plane();
  void find_any_control_plane(const error_info& why);
  void start_rendezvous() const;
  void start_control_plane(int* argc, char*** argv, problem wrong);
  sucl_group* all_processes() const;
  void check_threads(const sucl_bootstrap_info& info);
  void exchange_start_status(sucl_group* everyone, problem wrong);
  void compare_configurations(sucl_group* group);
  void start_call_polling();
  void load_tuning();
  void end_communicators();
  void report_at_exit();
  struct mpi_end;
  static std::vector<std::shared_ptr<mpi_end>>& mpi_ends();
  static void compare(std::vector<std::shared_ptr<mpi_end>> ends);
  static void end_with_mpi();
  static std::string keys_of_ended();
  static void compare_ended(const std::vector<std::string>& keys);
  bool ends_with_control();
  void prepare_end();
  const flight_record* record_of(const ended_calls& c);
  static std::optional<error_info> difference(const sucl_oob& oob, const end_comparison& ends,
                                              const std::vector<call_checksum>& all,
                                              process* recorder);
  bool end_differently(const finalize_barrier::outcome& found);
  void finalise();
  void leave_to_mpi();

  threading m_threads = threading::own;
  bool m_joined = false;  ///< a job that the program has made, which may leave it as it likes
  bool m_public = false;  ///< started by a program
  std::atomic<bool> m_on_stack{false};
  std::atomic<bool> m_left{false};  ///< by exit()
  bool m_only = false;              ///< the one of all processes, of which a program may have one
  native_group m_over;              ///< while it starts
  bool m_finalise = false;
  std::optional<launch> m_launch;  ///< of a job without MPI
  std::string m_control_reason = "given";
  std::string m_control_description = "none";
  sucl_group* m_everyone = nullptr;  ///< all processes of the job; null without a control plane
  sucl_group* m_ending = nullptr;    ///< the same, for what they exchange at the end alone
  std::unique_ptr<finalize_barrier> m_finalize_barrier;
  std::shared_ptr<end_comparison> m_ends;  ///< of all ranks of the process
  std::shared_ptr<mpi_end> m_at_mpi_end;   ///< where the program finalises MPI after this has ended
  progress_thread m_progress_thread{*this};
  watch_thread m_watch_thread{*this, [this](const auto& each) { for_each_communicator(each); }};
  std::optional<local_rank_entry> m_shown;      ///< to other ranks of the process
  std::unique_ptr<watchdog> m_caller_watchdog;  ///< where MPI must not be called by that thread
  std::atomic<bool> m_polling{false};           ///< a thread uses it
  std::chrono::steady_clock::time_point m_last_poll;
  std::atomic<bool> m_poll_now{false};
  bool (*m_hand_over)() = nullptr;
  std::weak_ptr<process> m_process;  ///< whose rank this is; of none, if it is a process itself
  std::mutex m_mutex;                ///< guards what follows
  std::vector<std::shared_ptr<process>> m_ranks;  ///< of this process
  struct known_communicator {
    std::weak_ptr<communicator> used;    ///< until nothing refers to it: then it ends
    std::weak_ptr<communicator> polled;  ///< until it has ended
  };
  std::vector<known_communicator> m_communicators;
  std::size_t m_existing = 0;  ///< communicators, also those whose destructor is at work
  std::condition_variable m_destroyed;
  std::vector<error_info> m_thrown;  ///< failures that commands have thrown, and no call
  std::atomic<bool> m_broken{false};
  std::atomic<bool> m_recovered{false};  ///< of a job that goes on without those that died
  std::string m_obstacle = "an operation was given up";  ///< to finalising, if broken
  std::atomic<bool> m_ended{false};
};

}  // namespace sucl::core
