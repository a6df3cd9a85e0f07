// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Turns a hang or a death into an error on every rank that names the operation and the culprits.
#pragma once

#include "core/deadlock/circle_search.hpp"
#include "core/failure/peer_processes.hpp"
#include "process/call_comparison.hpp"

#include <sucl/abi/bootstrap.h>
#include <sucl/error.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sucl::core {

class communicator;
class process;

/// Runs on the progress thread while SUCL_TIMEOUT is set, where devices are asked for errors of
/// kernels, and once a call has waited for long: without SUCL_TIMEOUT it does only that, reads
/// those of other ranks and searches for circles of ranks that wait for each other.
///
/// An operation that has been ready or posted for longer than the timeout starts a progress query:
/// every rank of its communicator is asked by a control message how far it has come. Ranks whose
/// last collective has a lower number have not arrived; ranks that do not answer within the grace
/// time are stopped, dead or unreachable, and on the own host the process table tells which. The
/// diagnosis is sent to all, so that every rank that still runs fails with the same message.
class watchdog {
 public:
  /// `circles`: null, or what gets its messages sent and read, and stays.
  explicit watchdog(process& owner, circle_search* circles = nullptr)
      : m_process(owner), m_circles(circles) {}
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;

  /// One poll at all communicators. Never waits.
  void poll(std::chrono::steady_clock::time_point now);

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
    std::chrono::steady_clock::time_point deadline;
    std::vector<answer> answers;
  };
  struct watched {
    std::weak_ptr<communicator> who;
    std::optional<std::chrono::steady_clock::time_point> gone_since;  ///< a peer, in good order
    std::unique_ptr<progress_query> open;
    bool failed = false;
    std::optional<call_comparison> calls;  ///< of ranks on several nodes
    std::optional<std::chrono::steady_clock::time_point> mismatch_reported;  ///< when
    std::string mismatch;
  };

  void poll_communicator(communicator& c, watched& w, std::chrono::steady_clock::time_point now);
  void read_messages(communicator& c, watched& w, std::chrono::steady_clock::time_point now);
  enum class message_kind : std::uint32_t;
  struct control_message;
  static void notify(const sucl_bootstrap& control, communicator& c, int rank,
                     const control_message& m);
  void take(communicator& c, watched& w, int source, const control_message& m,
            std::chrono::steady_clock::time_point now);
  void end_if_stuck(communicator& c, const watched& w,
                    std::chrono::steady_clock::time_point now) const;
  void compare_calls(communicator& c, watched& w, std::chrono::steady_clock::time_point now);
  void report_mismatch(communicator& c, watched& w, const std::string& what,
                       std::chrono::steady_clock::time_point now);
  void apply_diagnosis(communicator& c, watched& w, const diagnosis& v);
  void check_processes(communicator& c, watched& w, std::chrono::steady_clock::time_point now);
  void start_query(communicator& c, watched& w, std::chrono::steady_clock::time_point now);
  void conclude(communicator& c, watched& w);
  std::string reasons_of(const communicator& c, const progress_query& query,
                         std::vector<int>& late) const;
  void send_diagnosis(communicator& c, watched& w, errc code, const std::string& text);
  watched& watched_of(const std::shared_ptr<communicator>& c);
  void forget_ended();

  process& m_process;
  circle_search* m_circles;
  std::map<std::uint64_t, watched> m_watched;  ///< by communicator id
};

}  // namespace sucl::core
