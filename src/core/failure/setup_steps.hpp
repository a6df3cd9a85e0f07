// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Steps of set-up, in which ranks wait for each other: each has an end, and names the missing
/// ranks.
#pragma once

#include "core/exchange/waiting.hpp"
#include "core/failure/peer_processes.hpp"
#include "core/failure/presence.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace sucl::core {

class setup_step;

/// Which members of a step may leave before its end.
enum class may_leave { none, finalized, any };

/// Steps so far, by label. A communicator has its own, which end with it.
using step_counts = std::map<std::string, std::uint64_t>;

/// The steps that threads of this process are in. Supervises those whose thread is inside a
/// call that cannot be cancelled, as MPI_Init: with a timeout, a thread of its own prints which
/// ranks are missing and ends the process.
class SUCL_CORE_API setup_steps {
 public:
  using clock = std::chrono::steady_clock;

  setup_steps() = default;
  ~setup_steps();
  setup_steps(const setup_steps&) = delete;
  setup_steps& operator=(const setup_steps&) = delete;

  /// Before the first step. 0: no wait has a limit. `given_up` is called when a step was.
  void begin(std::chrono::nanoseconds timeout, std::function<void()> given_up);
  /// Once the processes know each other.
  void set_peers(std::shared_ptr<peer_processes> peers);

  /// A step of no communicator in which this process waits for others.
  struct long_wait {
    std::string what;  ///< the step, without its number
    std::uint64_t number = 0;
    std::vector<int> members;  ///< ranks of the job
    std::string label;
  };
  /// Those that have gone on since then at least, of which all members are known.
  std::vector<long_wait> waits_since(clock::time_point since) const;
  /// How many of these steps have been begun.
  std::uint64_t begun(const std::string& what) const;

 private:
  friend class setup_step;
  void add(setup_step& s);
  void remove(setup_step& s);
  std::optional<diagnosis> diagnose(setup_step& s, clock::time_point now) const;
  std::optional<diagnosis> diagnose_late(const setup_step& s, clock::time_point now) const;
  void add_leaving(const setup_step& s, peer_processes::departures& gone) const;
  std::optional<diagnosis> failed_in(const setup_step& s) const;
  std::vector<int> died_in_finalize(const setup_step& s) const;
  std::string missing_at_start(bool have_time) const;
  void watch();
  bool end_if_stuck(setup_step& s, clock::time_point now);

  std::chrono::nanoseconds m_timeout{0};
  std::function<void()> m_given_up;
  std::unique_ptr<presence> m_presence;
  mutable std::mutex m_mutex;  ///< guards what follows, and the judgement of steps
  std::shared_ptr<peer_processes> m_peers;
  std::vector<setup_step*> m_steps;
  step_counts m_begun;  ///< of no communicator
  std::condition_variable m_changed;
  bool m_stop = false;
  std::thread m_thread;
};

/// One step in this thread, from its constructor to its destructor. Inside another one it is part
/// of that.
class SUCL_CORE_API setup_step final : private wait_supervisor {
 public:
  /// `label` is the same on every rank, and so is the number of steps with it before. `members`:
  /// the ranks of the job that take part, in the order of their communicator, or none where that is
  /// not known. `begun`: where the steps with this label are counted; null: in `all`.
  setup_step(setup_steps& all, std::string label, std::vector<int> members = {},
             may_leave leaving = may_leave::none, step_counts* begun = nullptr);
  ~setup_step();
  setup_step(const setup_step&) = delete;
  setup_step& operator=(const setup_step&) = delete;

  /// This rank has failed in it: the others get the error.
  void fail(const error_info& why);

 private:
  friend class setup_steps;
  friend class setup_pause;
  using clock = setup_steps::clock;

  sucl_status keep_waiting() noexcept override;
  void note_progress() noexcept override;
  void stay_present();

  setup_steps* m_all = nullptr;  ///< null: part of another one
  std::string m_label;
  std::string m_what;          ///< the label without the number
  std::uint64_t m_number = 0;  ///< of those with it, from 1
  std::vector<int> m_members;
  may_leave m_may_leave = may_leave::none;
  step_counts* m_begun = nullptr;
  int m_line = -1;
  std::atomic<clock::time_point> m_since;      ///< when the wait that is going on began
  std::atomic<clock::time_point> m_last_poll;  ///< of the thread itself
  std::atomic<bool> m_paused{false};
  std::optional<clock::time_point> m_left;           ///< since when a member is known to have left
  std::optional<clock::time_point> m_failing_since;  ///< since when it cannot succeed any more
};

/// While it lives, this thread waits for an operation, which the watchdog supervises.
class SUCL_CORE_API setup_pause {
 public:
  setup_pause();
  ~setup_pause();
  setup_pause(const setup_pause&) = delete;
  setup_pause& operator=(const setup_pause&) = delete;
};

/// Runs `work`; what it throws on this rank is reported to the others that are in the step.
template <class Work>
auto in_step(setup_step& step, Work&& work) {
  try {
    return work();
  } catch (const error& e) {
    step.fail(e.info());
    throw;
  }
}

}  // namespace sucl::core
