// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Turns a hang or a death into an error on every rank that names the operation and the culprits.
#pragma once

#include "core/communicator/communicator.hpp"
#include "core/deadlock/circle_search.hpp"
#include "core/failure/peer_processes.hpp"
#include "core/watch/call_comparison.hpp"

#include <sucl/abi/bootstrap.h>
#include <sucl/error.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sucl::core {

class process_context;

/// Calls it for each communicator of a process that exists, also while it ends.
using each_communicator =
    std::function<void(const std::function<void(const std::shared_ptr<communicator>&)>&)>;

/// Runs on the watch thread while SUCL_TIMEOUT is set, where devices are asked for errors of
/// kernels, and once a call has waited for long: without SUCL_TIMEOUT it does only that, reads
/// those of other ranks and searches for circles of ranks that wait for each other.
///
/// An operation that has been ready or posted for longer than the timeout starts a progress query:
/// every rank of its communicator is asked by a control message how far it has come. Ranks whose
/// last collective has a lower number have not arrived; ranks that do not answer within the grace
/// time are stopped, dead or unreachable, and on the own host the process table tells which. The
/// diagnosis is sent to all, so that every rank that still runs fails with the same message.
///
/// A thread that is inside a backend may have the communicator's lock and never come back, as where
/// a library below waits for a process that has died, or for ever. Then nothing here waits for the
/// lock. Once a member has died or failed, or the timeout has passed, and the lock stays taken, the
/// process ends. So it does where the communicator has failed and a thread does not come out.
class watchdog {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// `circles`: null, or what gets its messages sent and read, and stays.
  watchdog(process_context& owner, each_communicator each, circle_search* circles = nullptr)
      : m_process(owner), m_each(std::move(each)), m_circles(circles) {}
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;

  /// One poll at all communicators. Never waits.
  void poll(time_point now);

  /// Fails a communicator on all ranks.
  void fail(const std::shared_ptr<communicator>& c, const diagnosis& why);

  /// Reports to the other ranks of a communicator, whose control group is held, how it has failed
  /// on this one.
  static void notify_failure(const sucl_bootstrap& control, communicator& c, const diagnosis& why);
  /// The same of its end, to the ranks that do not see it.
  static void notify_end(const sucl_bootstrap& control, communicator& c,
                         const peer_processes& peers, const communicator_end& e);

 private:
  struct answer {
    std::uint64_t posted = 0;
    bool given = false;
    bool held = false;
  };
  struct progress_query {
    std::string operation;
    std::uint64_t sequence = 0;  ///< 0: point-to-point
    std::vector<int> peers;      ///< of a message
    bool on_stream = false;
    bool is_asked = false;  ///< by a thread that gives up nothing
    time_point deadline;
    std::vector<answer> answers;
  };
  // The kinds of call_message come after these.
  enum class message_kind : std::uint32_t {
    query = 1,
    answer,
    diagnosis,
    end,
    circle,
    of_calls = 16
  };
  struct control_message {
    message_kind what;
    // diagnosis: errc; answer: 1 if commands of the program stand before it; end: its manner
    std::int32_t code;
    // query: of the operation; answer: of the last one posted; of_replays; end: calls
    std::uint64_t sequence;
    std::uint64_t replays;  // end
    char text[1024];        // diagnosis
  };
  struct watched {
    std::weak_ptr<communicator> who;
    std::optional<communicator::status> state;  ///< in this poll; none: its lock is taken
    int vain_polls = 0;                         ///< in a row that found it taken, perhaps for ever
    std::optional<time_point> taken_since;      ///< by the same call
    std::uint64_t lock_turns = 0;               ///< when it was found taken
    int polls_inside = 0;                       ///< of a caller, since it has failed
    std::vector<std::pair<int, control_message>> kept;  ///< received meanwhile
    std::optional<time_point> gone_since;               ///< a peer, in good order
    std::unique_ptr<progress_query> open;
    std::optional<diagnosis> failed;
    std::optional<diagnosis> unapplied;           ///< has failed with that, but the lock was taken
    std::optional<call_comparison> calls;         ///< of ranks on several nodes
    std::optional<time_point> mismatch_reported;  ///< when
    std::string mismatch;
  };

  struct obstacle {
    int polls = 0;  ///< to wait for
    std::optional<diagnosis> why;
  };

  void poll_communicator(communicator& c, watched& w, time_point now);
  void read_messages(communicator& c, watched& w, time_point now);
  static void notify(const sucl_bootstrap& control, communicator& c, int rank,
                     const control_message& m);
  void take(communicator& c, watched& w, int source, const control_message& m, time_point now);
  void take_kept(communicator& c, watched& w, time_point now);
  obstacle obstacle_of(const communicator& c, const watched& w, time_point now) const;
  std::string taken_text(const communicator& c) const;
  void end_if_taken_for_ever(communicator& c, watched& w, time_point now) const;
  void end_if_inside_for_ever(const communicator& c, watched& w) const;
  void end_if_stuck(communicator& c, const watched& w, time_point now) const;
  [[noreturn]] void end_process(const std::string& why) const;
  void compare_calls(communicator& c, watched& w, time_point now);
  void report_mismatch(communicator& c, watched& w, const std::string& what, time_point now);
  void apply_diagnosis(communicator& c, watched& w, const diagnosis& v);
  void check_processes(communicator& c, watched& w, time_point now);
  void start_query(communicator& c, watched& w, time_point now);
  void conclude(communicator& c, watched& w);
  std::string reasons_of(const communicator& c, const progress_query& query,
                         std::vector<int>& late) const;
  void send_diagnosis(communicator& c, watched& w, errc code, const std::string& text);
  watched& watched_of(const std::shared_ptr<communicator>& c);
  void forget_ended();

  process_context& m_process;
  each_communicator m_each;
  circle_search* m_circles;
  std::map<std::uint64_t, watched> m_watched;  ///< by communicator id
};

}  // namespace sucl::core
