// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Finds ranks that wait for each other in a circle, as where two call the collectives of two
/// communicators in different orders, or each receives before it sends.
#pragma once

#include "core/failure/setup_steps.hpp"
#include "core/record/record_layout.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sucl::core {

class communicator;
class process_context;

/// What travels along the waits: from a rank that waits in a call to those that have not made it,
/// and on along what these wait in.
struct circle_message {
  std::uint32_t what = 0;
  std::int32_t origin = 0;           ///< rank of the job that has sent it first
  std::int32_t lowest = 0;           ///< of the ranks on its path
  std::uint32_t replay = 0;          ///< the call is a replay
  std::uint64_t probe = 0;           ///< number of the origin's
  std::uint64_t number = 0;          ///< of the call that the last sender waits in
  std::int32_t kind = 0;             ///< of that call, or step_kind
  std::int32_t tag = 0, sender = 0;  ///< of a message; the rank in its communicator
  std::array<char, 64> step{};       ///< of set-up, without its number
  std::array<char, 1200> text{};
  static constexpr std::int32_t step_kind = -1;
};

/// Whether a call of the program's waits in this entry for what it has begun.
bool waits_in_call(const record_entry& e);
/// "allreduce #3 of communicator 1".
std::string describe_call(const record_entry& e, const communicator& c);
/// The rank that all messages of an operation go to and come from, or -1. Of a group it is known
/// while that is the oldest one.
int only_peer(communicator& c, const record_entry& e);
/// What others have to know of an operation of this rank, to find what they lack of it.
void set_call(circle_message& m, const record_entry& e, std::uint32_t repeats,
              const communicator& c);
/// Whether a rank has not made the call that the sender waits in, or that its message waits for.
bool lacks_call(process_context& rank, communicator& c, const circle_message& m);

/// Edge chasing after Chandy, Misra and Haas, "Distributed deadlock detection", ACM TOCS 1983: a
/// rank that gets back what it has sent is part of a circle. Only ranks that have waited in one
/// call for seconds take part, so it costs nothing before. Another thread may still make the call
/// that is missing, so the circle is no error: the lowest of its ranks prints it, once. The
/// watch thread alone.
///
/// A rank waits for an event, too, if the thread that has called the operation is blocked in a wait
/// for another thread, the process does next to nothing, and no other operation of the rank can
/// end: then the wait is most likely for that event. Devices that are no CPUs may be at work
/// meanwhile, so ranks with such are not taken for waiting.
class circle_search {
 public:
  using clock = std::chrono::steady_clock;
  using sender = std::function<void(int rank, const circle_message&)>;

  explicit circle_search(process_context& owner) : m_owner(owner) {}

  static constexpr std::chrono::milliseconds period{500};

  /// To be called once in a period: whether this rank has waited in a call for long.
  bool poll(clock::time_point now);
  /// Sends what is due along the waits of a communicator. `what`: the kind of message.
  void send(communicator& c, std::uint32_t what, clock::time_point now, const sender& to);
  void take(communicator& c, const circle_message& m, clock::time_point now);
  /// The entries of the record in whose calls the rank has waited for long.
  std::vector<std::size_t> long_calls(clock::time_point now) const;
  /// Whether the process had done next to nothing for a while when poll() was called last.
  bool quiet() const { return m_quiet; }

 private:
  // When to send along a wait again, and how long after that.
  struct schedule {
    clock::time_point next;
    std::chrono::nanoseconds interval{};
  };
  // A step of set-up, by its label, and a communicator.
  using step_path = std::pair<std::string, std::uint64_t>;

  struct wait {
    std::uint64_t serial = 0;
    std::uint32_t repeats = 0;
    clock::time_point since;
    schedule again;
    bool for_event = false;
  };
  struct passed_on {
    circle_message message;
    clock::time_point since;
    std::set<std::size_t> along;  ///< entries of the record
    std::set<step_path> along_steps;
  };

  enum class wait_kind { none, in_call, for_event };
  wait_kind waits_in(std::size_t index);
  bool is_blocked(std::int32_t thread);
  bool is_quiet(clock::time_point now);
  void send_calls(communicator& c, std::uint32_t what, clock::time_point now, const sender& to);
  void send_steps(communicator& c, std::uint32_t what, clock::time_point now, const sender& to);
  // What is to be sent now along one wait, and what it says so far.
  template <class Along>
  std::vector<circle_message> take_due(schedule& s, clock::time_point now, Along&& along);
  bool may_be_sent(communicator& c, std::size_t index, const wait& w) const;
  void report_wait_for_itself(communicator& c, const record_entry& e, const std::string& call);
  bool waits(clock::time_point now) const;

  process_context& m_owner;
  std::map<std::size_t, wait> m_waits;          ///< by entry of the record: posted, not done
  std::vector<setup_steps::long_wait> m_steps;  ///< in which this rank waits
  std::map<step_path, schedule> m_step_schedules;
  std::map<std::int32_t, std::string> m_traces;  ///< of threads, in this poll and in the last one
  std::map<std::int32_t, std::string> m_last_traces;
  bool m_quiet = false;  ///< the process has done next to nothing since the last poll
  clock::time_point m_last_poll;
  std::chrono::nanoseconds m_used{};  ///< processor time, until then
  std::list<passed_on> m_passed_on;
  std::set<std::pair<std::int32_t, std::uint64_t>> m_seen;  ///< origin and probe
  std::uint64_t m_probes = 0;
  bool m_reported = false;  ///< since when it has waited last
};

}  // namespace sucl::core
