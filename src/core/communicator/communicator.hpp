// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A communicator without SYCL.
#pragma once

#include "base/sizes.hpp"
#include "core/communicator/communicator_memory.hpp"
#include "core/communicator/compiled_plans.hpp"
#include "core/communicator/shrinking.hpp"
#include "core/communicator/tuning_state.hpp"
#include "core/context/communicator_context.hpp"
#include "core/control/launch.hpp"
#include "core/failure/setup_steps.hpp"
#include "core/fast_path/blocking_path.hpp"
#include "core/fast_path/call_cache.hpp"
#include "core/fast_path/prepared_calls.hpp"
#include "core/fast_path/stream_path.hpp"
#include "core/inspection/backend_queries.hpp"
#include "core/inspection/call_agreement.hpp"
#include "core/inspection/late_ranks.hpp"
#include "core/queue/issue_queue.hpp"
#include "core/support/forked.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace sucl::core {

/// Whether it is the program's communicator or a part of another one. A flat part has no levels of
/// its own.
enum class communicator_role { of_program, part, flat_part };

/// One communicator: what the device side and the interposer call. Its parts do the work:
///
///   issue_queue          operations from issue to end, in order; failures
///   blocking_path        calls that run in the calling thread
///   prepared_calls       calls that come again, which call_cache knows
///   stream_path          operations on native streams
///   communicator_memory  memory that all ranks of a node reach
///   backend_queries      which backend would execute an operation
///   call_agreement       calls compared with those of other nodes
///   late_ranks           whom an operation waits for
///   tuning_state, compiled_plans, shrinking
///
/// Any thread may call it, unless said otherwise. It ends with shut_down(), after which each call
/// is errc::shut_down.
class SUCL_CORE_API communicator final : public std::enable_shared_from_this<communicator>,
                                         private progress_waker {
 public:
  /// Takes over `group`. Collective. A part is ended by the communicator that it is of, which is
  /// watched in its stead.
  communicator(std::shared_ptr<process_context> owner, sucl_group* group, device_services device,
               communicator_role role = communicator_role::of_program);
  ~communicator();
  communicator(const communicator&) = delete;
  communicator& operator=(const communicator&) = delete;

  int rank() const { return m_context.rank(); }
  int size() const { return m_context.size(); }
  const topology& where() const { return m_context.where; }
  const std::string& label() const { return m_context.label; }

  prepared_calls& prepared() { return m_prepared; }
  stream_path& streams() { return m_streams; }
  backend_queries& backends() { return m_queries; }
  call_agreement& agreement() { return m_agreement; }
  late_ranks& late() { return m_late; }

  /// Counts what decides how operations are executed: a graph is as good as its number of these.
  std::uint64_t changes() const { return m_changes.load(std::memory_order_relaxed); }

  /// Issues an operation whose record is normalised. Copies its arrays and parts. `ready`: nothing
  /// has to be waited for; such an operation is posted, and polled for a moment, before the
  /// function returns. `blocking`: for a blocking call; the caller calls wait() at once.
  issue_result issue(const sucl_operation& record, const layouts& layout, bool ready,
                     const observer& watch, bool blocking = false) {
    return m_queue.issue(record, layout, ready, watch, blocking);
  }

  /// Takes an operation, whose record is normalised, into a recording; returns it as replay() wants
  /// it. Nothing is started and nothing waited for, but the next call of a rank that records alone
  /// is a mismatch. Its arrays and parts stay the caller's.
  sucl_operation record(const sucl_operation& operation);

  /// Issues a recorded operation once more. It is ready, and comes before what has been called and
  /// is not: the order among replays, and of replays and calls, is the caller's, alike on each
  /// rank.
  issue_result replay(const sucl_operation& recorded, const layouts& layout,
                      const observer& watch) {
    return m_queue.replay(recorded, layout, watch);
  }

  /// A collective was called with arguments that are wrong on this rank, and its caller gets the
  /// error. Where arguments are compared between ranks it counts as one of the operations, so
  /// that the others get it too; otherwise nothing happens. Never throws.
  void refuse(const sucl_operation& record, const error_info& wrong) noexcept {
    m_queue.refuse(record, wrong);
  }
  /// The same of an operation that was issued and is not ready: it fails instead of starting.
  void refuse(const ticket& t, const error_info& wrong) { m_queue.refuse(t, wrong); }

  /// The operation may start. `send` and `recv`, unless null, replace the record's memory.
  void mark_ready(const ticket& t, const void* send, void* recv) {
    m_queue.mark_ready(t, send, recv);
  }
  /// The same where the memory is in the record already, or was written into op_request::parts.
  void mark_ready(const ticket& t) { m_queue.mark_ready(t); }

  /// Issues an operation that is ready and returns when it is done. Throws what fails. `requested`,
  /// unless null, is what run_cached() may be given next time: the whole call, as it came.
  void run(const sucl_operation& record, const layouts& layout,
           const sucl_operation* requested = nullptr) {
    m_blocking.run(record, layout, requested);
  }

  /// Does the same for a call that is known to be right, because the same one has run before; false
  /// if it is not known, or not alone. Programs call the same operation over and over, and most of
  /// what a short one costs is finding out what is known already.
  bool run_cached(const sucl_operation& requested) { return m_blocking.run_cached(requested); }

  /// The same for a caller that keeps the call: the first time, and while operations are in flight,
  /// it is run(); afterwards nothing is looked up. One thread at a time for one call.
  void run_cached(persistent_call& call) { m_blocking.run_cached(call); }

  /// Whether a message of that rank and tag is here that no receive has taken. Nothing: it cannot
  /// be known before it is received, as between nodes. Never waits.
  std::optional<bool> arrived(int from, int tag);

  /// Something that an operation waits for has changed: wakes the progress thread.
  void wake() final;

  /// Helps until the ticket is done, then throws its failure, if any.
  void wait(const ticket& t) { m_queue.wait(t); }
  /// Helps until the ticket is done. Meanwhile the progress thread rests.
  void assist(const ticket& t) { m_queue.assist(t); }
  /// Helps until everything issued is done, then check().
  void wait_all();
  /// Throws the first failure of an operation that was not reported yet.
  void check();
  /// As check(), for what was issued: an end in good order, before which all of it was done, throws
  /// nothing.
  void check_issued();
  /// Whether the calls that ranks have enqueued as kernels have to be compared now and then.
  bool compares_calls() const { return m_context.backends.compares_calls(); }
  /// Compares them; whether they differ. Never waits.
  bool compare_calls() { return m_queue.compare_calls(); }

  /// The calls differ: the communicator ends with that error. `what` says which ranks have called
  /// what.
  void report_mismatch(const std::string& what) { m_queue.report_mismatch(what); }
  /// A member on another machine has ended the communicator, and how.
  /// False: not now, as with all functions that try.
  bool try_note_end(int member, const communicator_end& e) {
    return m_queue.try_note_end(member, e);
  }
  /// The error of all ranks if this one waits for members that have ended it.
  std::optional<std::string> ended_too_early() { return m_queue.ended_too_early(); }
  /// Whether a call is inside a backend.
  bool entered() const { return m_queue.entered(); }
  /// Whether operations are over whose observer has not been notified.
  bool has_undelivered() const { return m_queue.has_undelivered(); }

  /// Whether a thread is inside assist() and makes progress.
  bool assisted() const { return m_queue.assisted(); }

  /// Makes progress without waiting. False if nothing is to be done until something is issued or
  /// becomes ready. `finished`, unless null, counts operations that this call completed.
  bool progress(int* finished = nullptr) { return m_queue.progress(finished); }

  /// Memory of the host for `count` elements that every rank of the node reaches, so that
  /// collectives on it need no copies; ordinary memory where that cannot be. Zeroed, on pages of
  /// its own, of any count on each rank. Lives until deallocate() or the end of the communicator.
  /// Collective; blocks; errc::out_of_memory on every rank if one has none.
  void* allocate(std::uint64_t count, std::uint64_t element_size = 1) {
    m_blocking.await_ranks({arrival::allocate, SUCL_TYPE_BYTES, element_size});
    ++m_changes;
    return m_memory.allocate(base::product(count, element_size));
  }
  /// Collective; waits for what was issued before and uses it. errc::invalid_memory, on every rank,
  /// for any other pointer. While an exception destroys its owner it waits for nothing, and leaves
  /// what is in use to the end of the communicator.
  void deallocate(void* memory);
  /// Throws if the operation touches memory that was deallocated after changes() was `since`.
  void check_not_freed(const sucl_operation& record, std::uint64_t since) const {
    m_memory.check_not_freed(record, since);
  }

  /// Has the kernels of other ranks reach memory of the device too, of any size on each rank, until
  /// detach() of the same; whether all of them do. Collective; blocks.
  bool attach(void* memory, std::uint64_t bytes) {
    m_blocking.await_ranks({arrival::register_memory});
    ++m_changes;
    return m_memory.attach(memory, bytes);
  }
  /// As deallocate().
  void detach(void* memory);

  /// Makes a plan of a composition, verified, with its scratch. Collective; blocks. Throws on every
  /// rank what is wrong on any.
  compiled_facts compile(const compile_request& request);
  /// Frees the plan. Nothing in flight may run it.
  void forget_compiled(std::uint64_t number) noexcept { m_plans.forget(number); }
  /// The same for parts of plans of a communicator that this one is a part of.
  compiled_plans& plans() { return m_plans; }

  /// Memory that the ranks of the communicator share, zeroed; not for operations. Null where there
  /// is none that every rank reaches. Lives as long as the communicator. Collective; blocks.
  std::byte* common_memory(std::uint64_t bytes) { return m_memory.common_memory(bytes); }
  /// Uses another tuning table from now on; null: none. Collective; nothing is in flight.
  void use_table(std::shared_ptr<const tune::table> table) {
    ++m_changes;
    m_tuning.use(std::move(table));
  }
  /// The same by the text of a table, which must be the same on every rank; empty: none. Waits
  /// for what is in flight. Throws on every rank, and changes nothing, if it is wrong on any.
  void use_tuning(const std::string& toml);

  /// Begins a step of set-up in which all ranks of it wait for each other; see setup_step.
  std::unique_ptr<setup_step> begin_step(const char* what);

  /// Collective. `call`: what the program has called, split() or dup().
  std::shared_ptr<communicator> split(int colour, int key, device_services device,
                                      arrival call = arrival::split);

  /// Ends this one, and makes one of its members that live. Collective over those. After
  /// errc::timeout it may be called again, with the same services.
  std::shared_ptr<communicator> shrink(const device_services& device);

  /// How this rank joins a job of these members and of `joiners` more processes: see
  /// agree_to_grow(). Collective.
  launch agree_to_grow(const std::string& id, int joiners);

  /// Shows the others that this process ends without having ended it. Never waits.
  void leave();
  /// An exception has destroyed its handle, so that it does not end in good order in any thread.
  void note_unwinding() noexcept { m_unwinding.store(true, std::memory_order_release); }

  /// Ends the communicator: everything still in flight is waited for, or, if it failed, given up.
  /// Afterwards each call is errc::shut_down.
  void shut_down(bool drain);
  /// The same where nothing refers to it any more.
  void end() noexcept;

  /// Gives up everything with this error; later calls throw it. From the watchdog.
  void fail_all(const error_info& info) { m_queue.fail_all(info); }
  bool try_fail_all(const error_info& info) { return m_queue.try_fail_all(info); }
  /// The same where the program knows the cause of it, or is about to.
  void abandon(const error_info& info) { m_queue.abandon(info); }
  /// The same for what has failed on this rank alone: the others get the error, and fail too.
  /// errc::shut_down is for an end that the program asks for: it is logged for information alone,
  /// no process takes it for a failure of its own, and the others need not look at it.
  void fail_everywhere(const error_info& info);
  /// Checks whether a kernel of this process has failed on the device; then fails likewise.
  void check_device();

  // For the watchdog: what is known of this rank's progress.
  using status = progress_status;
  status snapshot();
  /// None where another thread has the lock, and does not give it back for a moment.
  std::optional<status> try_snapshot();
  /// As issue_queue::lock_turns().
  std::uint64_t lock_turns() const noexcept { return m_queue.lock_turns(); }
  /// Keeps the control group, and with it the communicator, from ending meanwhile.
  std::unique_lock<std::mutex> hold_control_group() { return std::unique_lock(m_control_mutex); }
  sucl_group* control_group() const { return m_context.group; }
  std::uint64_t id() const { return m_context.id; }
  bool alive() const { return !m_queue.ended() && !forked(); }

  /// Whether the progress thread knew of it; from now on it does, or does not. For that thread.
  bool exchange_queued(bool queued) { return m_queued.exchange(queued, std::memory_order_acq_rel); }

 private:
  void make(int rank, int size);
  sucl_group* split_group(int colour, int key);
  std::shared_ptr<communicator> make_part(int colour, int key, bool flat);
  void read_published_diagnosis();
  status locked_snapshot();
  bool may_free(arrival call, const void* memory);
  void show_end(const communicator_end& e);
  void give_up_to_shrink();

  const bool m_is_part, m_is_flat;
  communicator_context m_context;
  issue_queue m_queue;
  call_cache m_calls;
  tuning_state m_tuning;
  prepared_calls m_prepared;
  blocking_path m_blocking;
  stream_path m_streams;
  communicator_memory m_memory;
  compiled_plans m_plans;
  backend_queries m_queries;
  call_agreement m_agreement;
  late_ranks m_late;
  shrinking m_shrinking;

  step_counts m_steps_begun;
  std::mutex m_control_mutex;  ///< taken before that of the queue, never after it
  /// Diagnoses on this machine that were read.
  std::atomic<std::uint64_t> m_seen_diagnosis{0};
  std::atomic<std::uint64_t> m_changes{0};
  std::atomic<bool> m_queued{false};     ///< known to the progress thread
  std::atomic<bool> m_unwinding{false};  ///< an exception has destroyed its handle
};

}  // namespace sucl::core
