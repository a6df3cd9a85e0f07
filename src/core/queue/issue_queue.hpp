// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The operations of one communicator, from their issue to their end.
#pragma once

#include "core/context/communicator_context.hpp"
#include "core/operation/call_log.hpp"
#include "core/operation/call_totals.hpp"
#include "core/operation/operation.hpp"
#include "core/queue/call_validation.hpp"
#include "core/queue/dispatcher.hpp"
#include "core/queue/ended_members.hpp"
#include "core/queue/failure_state.hpp"
#include "core/queue/op_request.hpp"
#include "core/queue/request_pool.hpp"
#include "core/support/biased_mutex.hpp"
#include "core/support/forked.hpp"

#include <sucl/error.hpp>
#include <sucl/export.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sucl::core {

/// Wakes the progress thread for a communicator.
class progress_waker {
 public:
  virtual void wake() = 0;

 protected:
  ~progress_waker() = default;
};

/// What is known of a rank's progress, for the watchdog.
struct progress_status {
  std::uint64_t posted = 0;    ///< number of the last collective that was called and posted
  std::uint64_t replayed = 0;  ///< collectives that were replayed and posted
  std::uint64_t issued = 0;
  bool busy = false;
  sucl_operation oldest{};  ///< of those ready or posted, while busy
  std::uint64_t turn = 0;   ///< of the oldest, if a collective: which call or which replay it is
  std::vector<int> peers;   ///< of the oldest, if a message or a group of them
  std::vector<int> ended;   ///< then: members that have ended the communicator in good order
  bool on_stream = false;   ///< it is on a native stream
  bool held = false;        ///< what is on the stream waits for commands of the program
  clock::time_point since;
};

/// Operations are posted to backends in issue order, each as soon as it is ready and the one before
/// it is posted completely; once posted they progress side by side. Progress is made by any thread
/// that calls progress(): the progress thread, a caller that waits, or one that polls for a moment
/// after issuing.
///
/// Its mutex guards every call into backends, but for those of the one caller that has entered a
/// backend, for a blocking call or with a native stream: see enter() and enter_with_stream().
class SUCL_CORE_API issue_queue {
 public:
  using held_lock = std::unique_lock<biased_mutex>;

  /// Both must outlive this object.
  issue_queue(communicator_context& c, progress_waker& waker)
      : m_context(c), m_waker(waker), m_dispatch(c), m_members(c) {}
  issue_queue(const issue_queue&) = delete;
  issue_queue& operator=(const issue_queue&) = delete;

  // Any thread, without the mutex. What they do is said at the functions of `communicator`.

  issue_result issue(const sucl_operation& record, const layouts& layout, bool ready,
                     const observer& watch, bool blocking);
  /// With the lock, which it gives up. Nothing has failed.
  issue_result issue(const sucl_operation& record, const layouts& layout, bool ready,
                     const observer& watch, bool blocking, held_lock& lock);
  sucl_operation record(const sucl_operation& operation);
  issue_result replay(const sucl_operation& recorded, const layouts& layout, const observer& watch);
  void refuse(const sucl_operation& record, const error_info& wrong) noexcept;
  void refuse(const ticket& t, const error_info& wrong);
  void mark_ready(const ticket& t, const void* send, void* recv);
  void mark_ready(const ticket& t);
  bool progress(int* finished = nullptr);
  void wait(const ticket& t);
  void assist(const ticket& t);
  bool assisted() const { return m_assistants.load(std::memory_order_acquire) > 0; }
  /// Returns when everything issued is done; `at_end`: or has been given up.
  void drain(bool at_end);
  void check();
  void check_issued();
  bool compare_calls();
  bool failed_or_ended();
  /// From now on the calls are kept for ranks of other nodes. Before the first one.
  void log_calls() { m_log.emplace(); }
  /// And counted, to be compared at the end.
  void count_calls() { m_counted = true; }
  /// Null: they are not.
  const call_log* calls() const { return m_log ? &*m_log : nullptr; }
  /// What is known of some of them.
  call_excerpt excerpt(std::uint64_t from, std::uint64_t stride, std::uint64_t count);
  /// Ranks on other nodes have called something else.
  void report_mismatch(const std::string& what);
  /// Whether operations are over whose observer has not been notified. Any thread.
  bool has_undelivered() const { return m_undelivered.load(std::memory_order_acquire) != 0; }
  /// A caller is inside a backend.
  bool entered() const { return m_entered.load(std::memory_order_acquire); }
  /// Fails everything that is not done, and everything that is issued later. Once. A caller inside
  /// a backend gets a moment to come out before.
  void fail_all(const error_info& info);
  /// False: not now, as another thread has the lock and does not give it back for a moment.
  bool try_fail_all(const error_info& info);
  void abandon(const error_info& info);
  bool ended() const { return m_ended.load(std::memory_order_acquire); }

  // For parts of the communicator that do several things at once.

  held_lock lock() { return held_lock(m_mutex); }
  held_lock try_lock() { return held_lock(m_mutex, std::try_to_lock); }
  /// Tries again and again, as a thread may have it nearly all the time but not for ever.
  held_lock try_lock_for(std::chrono::nanoseconds time);
  /// How often the lock has been given back. Any thread, also without it.
  std::uint64_t lock_turns() const noexcept { return m_mutex.turns(); }

  // The rest with the lock.

  /// The calling thread does something that is worth a bias of the mutex.
  void bias_to_me() noexcept { m_mutex.bias_to_me(); }
  /// Whether nothing is issued that is not done, and no caller is inside a backend.
  bool idle() const {
    return m_waiting.empty() && m_flight.empty() && !m_entered.load(std::memory_order_acquire);
  }
  /// Throws what a call has to: that the communicator has ended, or what has failed in it.
  void throw_if_ended() {
    if (ended() || m_failures.any() || forked() || m_context.backends.mismatched())
      rethrow_pending();
    m_context.backends.check();
  }
  void throw_if_shut_down() const;
  /// Why nothing works any more, once that is so.
  const std::optional<error_info>& broken() const { return m_failures.broken(); }
  /// A call throws what is wrong.
  void note_reported();
  progress_status snapshot();
  /// The tag of a collective that is called now.
  std::int32_t call_tag(bool blocking) const {
    return encode_tag(blocking, origin::call, m_recorded);
  }
  /// Number of the last collective that was issued.
  std::uint64_t collectives() const { return m_collectives; }
  /// Whether an operation that is not done, or a caller inside a backend, may run a compiled plan.
  bool runs_plan(std::uint64_t number) const;
  /// An operation that is not done and may touch that memory.
  ticket user_of(const void* memory, std::uint64_t bytes) const;
  /// Returns when no caller is inside a backend; gives up the lock meanwhile.
  void await_exit(held_lock& lock);
  /// The comparison of arguments.
  call_validation& validation() { return m_validation; }
  const call_validation& validation() const { return m_validation; }

  /// Whether `c` may execute an operation in the calling thread now: everything before it is
  /// posted, if not done, and nothing would stand still meanwhile.
  bool may_enter(const sucl_operation& record, const backend_instance& c) const {
    return m_waiting.empty() && !m_entered && may_post(record) && !needs_independent_progress(c);
  }
  /// Numbers an operation that the calling thread executes in a backend, without the lock, until
  /// it calls leave(). Until then no other thread calls a backend, but for those whose operations
  /// have to go on.
  /// `signature`: as of signature_hash(), or 0.
  void enter(sucl_operation& record, std::uint64_t signature = 0) {
    record.sequence = number(record.kind);
    note_call(record, signature);
    record_entry* const noted =
        m_context.record.note_blocking(record, record.sequence, record_state::posted);
    m_context.record.note_caller(noted);
    m_inside.store(noted, std::memory_order_relaxed);
    m_posted = record.sequence;
    m_entered.store(true, std::memory_order_relaxed);
  }
  /// Without the lock. What was issued meanwhile belongs to the progress thread, or to a
  /// thread that assists it.
  void leave(bool failed = false) noexcept {
    if (failed) m_any_failed = true;
    if (record_entry* const e = m_inside.load(std::memory_order_relaxed)) {
      m_inside.store(nullptr, std::memory_order_relaxed);
      record_writer::set(e, failed ? record_state::failed : record_state::done);
    }
    m_entered.store(false, std::memory_order_release);
  }
  /// A collective was executed with the lock, at once. `signature`: as of signature_hash(), or
  /// 0. `noted`: where the record has the same call of before, and then this one.
  void note_executed(const sucl_operation& record, std::uint64_t signature,
                     record_writer::mark& noted) {
    m_posted = number(record.kind);
    note_call(record, signature);
    if (record_writer::repeat(noted, m_posted)) return;
    noted = record_writer::mark_of(
        m_context.record.note_blocking(record, m_posted, record_state::done), m_posted);
    m_context.record.note_caller(noted.entry);
  }
  /// What ranks compare of a collective that may come again; 0: nothing.
  std::uint64_t signature_hash(const sucl_operation& record) const {
    return m_counted ? signature_of(record, m_context.size()).hash : 0;
  }
  /// A collective was called that a graph of a device is going to execute.
  void note_enqueued(const sucl_operation& record) {
    m_posted = number(record.kind);
    note_call(record);
    m_context.record.note(record, m_posted, record_state::enqueued);
  }
  /// A message was executed with the lock, at once. `noted`: null, or as of note_executed().
  void note_message(const sucl_operation& record, record_writer::mark* noted) {
    if (noted && record_writer::repeat(*noted, 0)) return;
    record_entry* const e = m_context.record.note(record, 0, record_state::done);
    m_context.record.note_caller(e);
    if (noted) *noted = record_writer::mark_of(e, 0);
  }
  /// A collective has failed before it had a number.
  void note_failed(const sucl_operation& record) noexcept {
    m_any_failed = true;
    m_context.record.note(record, m_collectives + 1, record_state::failed);
  }
  /// For the caller that has entered with an operation, between two calls to the backend. Without
  /// the lock. Throws if the operation cannot be done.
  void progress_others(const sucl_operation& entered);
  /// Takes in an operation that a blocking call has started.
  ticket adopt(const sucl_operation& record, const backend_instance& via, sucl_request* request);

  /// Whether an operation would be in order on a native stream: what the host still has to post
  /// does not have to come first.
  bool may_follow_on_stream(const sucl_operation& record, const backend_instance& c) const;
  /// Issues an operation that is posted on a native stream.
  ticket append_on_stream(const sucl_operation& record, const layouts& layout,
                          const backend_instance& c);
  /// Takes an operation out of the queue, to be posted by the calling thread without the lock.
  /// `first`: it is the one whose turn it is. False: it was given up meanwhile.
  bool enter_with_stream(op_request& n, held_lock& lock, bool& first);
  /// It was posted, or has failed. Gives up the lock meanwhile.
  void leave_with_stream(op_request& n, const std::optional<error_info>& failure, held_lock& lock);

  /// The exception that is being handled, as the failure of an operation.
  error_info caught(const sucl_operation& record) const { return m_dispatch.caught(record); }

  // The end.

  /// Before it ends, a rank checks whether others have found a mismatch in its last call:
  /// they are about to, or they are late. No rank waits for long for those.
  void await_mismatch_reports();
  /// What this rank has had done, as it shows the others. With the lock.
  communicator_end end_of_work(bool leaving) const;
  /// Its collectives, where all ranks of it must have the same: nothing has failed.
  bool counts_calls() const { return m_counted; }
  const call_totals& totals() const { return m_totals; }
  const pair_log& pairs() const { return m_pairs; }
  bool any_failed() const { return m_any_failed; }
  /// A member that shares no memory with this rank has ended it.
  /// False: not now.
  bool try_note_end(int member, const communicator_end& e);
  /// The error of the ranks about members that have ended it in good order, where this rank
  /// waits for them; none while another thread has the lock.
  std::optional<std::string> ended_too_early();
  /// From now on every call fails. False: it had ended before.
  bool end() { return !m_ended.exchange(true); }
  /// What no call has thrown.
  std::optional<error_info> unreported() const { return m_failures.unreported(); }
  bool is_thrown() const { return m_failures.is_thrown(); }

 private:
  /// For which the watch thread tries to get the lock.
  static constexpr std::chrono::milliseconds moment{1};

  void fail_all(const error_info& info, held_lock& lock);
  op_request& take(const sucl_operation& record, const layouts& layout, bool ready);
  op_request& take_call(const sucl_operation& record, const layouts& layout, bool blocking,
                        bool ready);
  issue_result begin(op_request& n, const observer& watch, bool blocking, held_lock& lock);
  void pump();
  void post(op_request& n);
  bool test(op_request& n);
  void test_all();
  // Moves an operation that is posted, or about to be, to those in flight.
  void start(op_request& n) {
    m_flight.push_back(&n);
    if (!is_point_to_point(n.record.kind)) last_turn(n) = n.turn;
    if (!n.failure) note_call(n.record);
    n.posted = clock::now();
    record_writer::set(n.noted, record_state::posted);
    n.at.store(op_request::phase::posted, std::memory_order_relaxed);
  }
  void finish(op_request& n, const error_info* failure);
  void deliver(std::vector<op_request*>& done);
  void deliver_done(held_lock& lock);
  bool progress_locked(held_lock& lock, int* finished, bool may_enter);
  bool may_post(const sucl_operation& next) const {
    return std::all_of(m_flight.begin(), m_flight.end(), [&](const op_request* n) {
      return !n->pipeline || n->pipeline->may_follow(next);
    });
  }
  bool needs_independent_progress(const backend_instance& c) const;
  std::chrono::nanoseconds spin_limit_for(const sucl_operation& record) const;
  std::uint64_t number(sucl_kind kind) { return is_point_to_point(kind) ? 0 : ++m_collectives; }
  // Notes what has been called or replayed, for ranks of other nodes and for the comparison at the
  // end. It is noted when it is posted, because only then the position of a replay among the calls
  // is known.
  void note_call(const sucl_operation& record, std::uint64_t signature = 0) {
    if ((!m_log && !m_counted) || is_point_to_point(record.kind)) return;
    if (m_log || signature == 0) {
      const call_signature s = signature_of(record, m_context.size());
      if (m_log) m_log->note(s);
      signature = s.hash;
    }
    const bool replayed = is_replay(record);
    const std::uint64_t balance = pair_balance(record, m_context.rank(), m_context.size());
    m_totals.note(replayed, signature, balance);
    m_pairs.note(m_totals, replayed, record.kind, balance);
  }
  std::uint64_t& last_turn(const op_request& n) {
    return is_replay(n.record) ? m_replayed : m_posted;
  }
  void rethrow_pending();
  void give_up(const error_info& info);
  void test_in_order();
  void give_up_mismatched(bool may_enter);
  void give_up_for(const error_info& why);
  void call_back(const error_info& why, held_lock& lock);
  std::optional<error_info> find_ended();
  void check_ended_members();
  const op_request* oldest() const;

  communicator_context& m_context;
  progress_waker& m_waker;
  biased_mutex m_mutex;  ///< guards what follows, and every call into backends
  dispatcher m_dispatch;
  call_validation m_validation;
  ended_members m_members;
  std::optional<call_log> m_log;
  bool m_counted = false;
  call_totals m_totals;                   ///< if counted
  pair_log m_pairs;                       ///< likewise
  std::atomic<bool> m_any_failed{false};  ///< an operation
  request_pool m_requests;
  std::deque<op_request*> m_waiting;             ///< issued, not posted; in order
  std::vector<op_request*> m_flight;             ///< posted, not done; in order
  std::vector<op_request*> m_done;               ///< finished, observer not notified yet
  std::atomic<std::int32_t> m_undelivered{0};    ///< finished; a thread may be at it
  std::atomic<bool> m_entered{false};            ///< a caller is inside a backend; set locked
  std::atomic<record_entry*> m_inside{nullptr};  ///< what it executes there
  std::uint64_t m_collectives = 0;               ///< issued so far
  std::uint64_t m_posted = 0;                    ///< number of the last collective that was a call
  std::uint32_t m_recorded = 0;                  ///< collectives
  std::uint64_t m_replays = 0;                   ///< collectives that were issued by a replay
  std::uint64_t m_replayed = 0;                  ///< and posted
  failure_state m_failures;
  std::optional<error_info> m_called_back;  ///< why the caller inside a backend has to come out
  /// Since when the operation that comes next has been ready.
  std::pair<clock::time_point, clock::time_point> m_seen_ready;  ///< by when it was issued
  std::optional<clock::time_point> m_mismatch_seen;  ///< while a caller was inside a backend
  std::atomic<bool> m_ended{false};
  std::atomic<int> m_assistants{0};  ///< threads inside assist()
};

}  // namespace sucl::core
