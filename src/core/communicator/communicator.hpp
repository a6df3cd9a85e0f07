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
#include "core/failure/setup_steps.hpp"
#include "core/fast_path/blocking_path.hpp"
#include "core/fast_path/call_cache.hpp"
#include "core/fast_path/prepared_calls.hpp"
#include "core/fast_path/stream_path.hpp"
#include "core/queue/issue_queue.hpp"
#include "core/support/forked.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
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
///   tuning_state, compiled_plans
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

  /// Issues an operation whose record is normalised. Copies its arrays and parts. `ready`: nothing
  /// has to be waited for; such an operation is posted, and polled for a moment, before the
  /// function returns. `blocking`: for a blocking call; the caller calls wait() at once.
  issue_result issue(const sucl_operation& record, const layouts& layout, bool ready,
                     const observer& watch, bool blocking = false) {
    return m_queue.issue(record, layout, ready, watch, blocking);
  }

  /// Does the same for a call without dependencies that is known to be right, because the same one
  /// has been issued before: what was worked out for that one is used again. Nothing if it is not
  /// known. Where the result says done the operation has not failed, and may be null.
  std::optional<issue_result> issue_cached(const sucl_operation& requested, const observer& watch) {
    return m_prepared.issue(requested, watch);
  }
  /// The same for a caller that keeps the call, which is not a blocking one: the first time it is
  /// issue(). One thread at a time for one call.
  issue_result issue_cached(persistent_call& call, const observer& watch) {
    return m_prepared.issue(call, watch);
  }
  /// `requested`, the whole call as it came, was issued as `record`, which was ready and whose
  /// memory is contiguous: issue_cached() may be given it next time.
  void remember_issued(const sucl_operation& requested, const sucl_operation& record) {
    m_prepared.remember_issued(requested, record);
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

  /// Issues an operation that is going to be posted on a native stream, by post_on_stream(), which
  /// must be called for these operations in the order of their issue. Nothing if its backend cannot
  /// order it there, or if something before it has to be posted by the host first: then it is one
  /// for issue(). `layout` and the kinds of memory must be final, addresses need not be.
  std::optional<ticket> issue_on_stream(const sucl_operation& record, const layouts& layout) {
    return m_streams.issue_on_stream(record, layout);
  }

  /// Whether issue_on_stream() would issue it now. The answer of a communicator that is part of
  /// another one, for the thread that issues all its operations.
  bool would_order_on_stream(const sucl_operation& record) {
    return m_streams.would_order_on_stream(record);
  }

  /// Posts such an operation; its memory is in the record, or in op_request::parts. From inside the
  /// command that owns the stream's order at that moment. Never throws: failures are kept for
  /// check().
  void post_on_stream(const ticket& t, void* stream) noexcept {
    m_streams.post_on_stream(t, stream);
  }

  /// Whether an operation would go to a backend that launches kernels.
  bool launches(const sucl_operation& record) { return m_streams.launches(record); }
  /// Whether they are for post_launch(), and need the addresses of their memory then.
  bool launches_by_address(const sucl_operation& record) {
    return m_streams.launches_by_address(record);
  }
  /// Whether the operation is for post_launch() instead.
  static bool launches(const ticket& t) { return t.get()->via->traits.launches; }
  /// The same for a backend that launches kernels: in the thread that has issued the operation, at
  /// once. `target` names the queue.
  void post_launch(const ticket& t, void* target) noexcept { post_on_stream(t, target); }

  /// Puts an operation into a graph that the device's native stream captures, and runs nothing:
  /// `target` is that stream or, for what launches(), as for post_launch(). False where it cannot
  /// be; then the graph is of no use. end_capture() ends it either way.
  bool capture(captured_operations& into, const sucl_operation& record, const layouts& layout,
               void* target, bool is_stream) {
    return m_streams.capture(into, record, layout, target, is_stream);
  }
  void end_capture(captured_operations& captured) { m_streams.end_capture(captured); }
  /// Counts what decides how operations are executed: a graph is as good as its number of these.
  std::uint64_t changes() const { return m_changes.load(std::memory_order_relaxed); }
  /// Whether nothing of the host is in flight that comes before, and the graph may be launched.
  bool may_replay(const captured_operations& captured) { return m_streams.may_replay(captured); }
  /// The operations count as called now; what is to be written before the launch, if anything.
  std::optional<graph_base> replay(captured_operations& captured) {
    return m_streams.replay(captured);
  }

  /// Whether device memory would go through scratch memory of the host on its way to whichever
  /// backend executes a send or recv.
  bool stages(const sucl_operation& message) { return m_streams.stages(message); }
  /// Takes memory of the host for a message instead of its device memory, which the issuer
  /// copies from, before the message is ready, or to, once it is done. Only before it is ready.
  static void use_bounce_buffer(const ticket& t, void* host) { t.get()->bounce_buffer = host; }

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
  /// Whether the calls that ranks have enqueued as kernels have to be compared now and then.
  bool compares_calls() const { return m_context.backends.compares_calls(); }
  /// Compares them; whether they differ. Never waits.
  bool compare_calls() { return m_queue.compare_calls(); }

  /// Whether what it has called is compared with what ranks on other nodes have, beside the
  /// operations, and found out by the progress thread.
  bool logs_calls() const { return m_queue.calls() != nullptr; }
  /// The number of the last of those calls, and the histories of some.
  std::uint64_t calls_made() const { return m_queue.calls()->last(); }
  call_excerpt excerpt(std::uint64_t from, std::uint64_t stride, std::uint64_t count) {
    return m_queue.excerpt(from, stride, count);
  }
  /// The calls up to this one are the same as those of rank 0. On rank 0: of all ranks.
  void note_agreed(std::uint64_t number) { m_agreed.store(number, std::memory_order_release); }
  std::uint64_t agreed_calls() const { return m_agreed.load(std::memory_order_acquire); }
  /// Rank 0, which waits_for_agreement(), has said so to all others.
  void note_agreement_sent() { m_agreement_sent.store(true, std::memory_order_release); }
  /// The communicator ends once all calls have been compared.
  bool waits_for_agreement() const { return m_awaits_agreement.load(std::memory_order_acquire); }
  /// The calls differ: the communicator ends with that error. `what` says which ranks have called
  /// what.
  void report_mismatch(const std::string& what) { m_queue.report_mismatch(what); }
  /// A member on another machine has ended the communicator, and how.
  void note_end(int member, const communicator_end& e) { m_queue.note_end(member, e); }
  /// The error of all ranks if this one waits for members that have ended it.
  std::optional<std::string> ended_too_early() { return m_queue.ended_too_early(); }
  /// Whether a call is inside a backend.
  bool entered() const { return m_queue.entered(); }

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

  /// The name of the backend that would execute this in the form that returns an event.
  std::string selected_backend_by_event(kind k, std::uint64_t bytes, type t, op o);
  /// Which backend would execute this, and why.
  std::string explain(kind k, std::uint64_t bytes, type t, op o);
  /// Its name, for a record whose arrays are complete and a call of the blocking form or not.
  std::string selected_backend_of(const sucl_operation& record, bool blocking = true);
  /// Whether that backend needs no MPI, so that any thread may make its progress.
  bool any_thread_executes(const sucl_operation& record, bool blocking = true);
  /// Why plans do not execute a record by a row of a tuning table, if that is the first one that
  /// fits; empty: they do. The same on every rank.
  std::string plan_obstacle(const tune::table_row& row, const sucl_operation& record);

  /// Begins a step of set-up in which all ranks of it wait for each other; see setup_step.
  std::unique_ptr<setup_step> begin_step(const char* what);

  /// Collective. `call`: what the program has called, split() or dup().
  std::shared_ptr<communicator> split(int colour, int key, device_services device,
                                      arrival call = arrival::split);

  /// Ends this one, and makes one of its members that live. Collective over those. After
  /// errc::timeout it may be called again, with the same services.
  std::shared_ptr<communicator> shrink(const device_services& device);

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
  /// The same where the program knows the cause of it, or is about to.
  void abandon(const error_info& info) { m_queue.abandon(info); }
  /// The same for what has failed on this rank alone: the others get the error, and fail too.
  /// errc::shut_down is for an end that the program asks for: it is logged for information alone,
  /// no process takes it for a failure of its own, and the others need not look at it.
  void fail_everywhere(const error_info& info);
  /// Checks whether a kernel of this process has failed on the device; then fails likewise.
  void check_device();

  /// Whom the oldest operation in flight waits for, as "rank 1 has not arrived", by what the other
  /// ranks answer; empty where there is no watchdog, nothing is in flight, or nothing is known
  /// within `time`. The operation goes on. Any thread but those of SuCL.
  std::string ask_who_is_late(std::chrono::milliseconds time);

  // For the watchdog: whether a thread asks that, and the answer.
  bool asks_who_is_late() const { return m_late.asks; }
  void answer_who_is_late(std::string answer);

  // For the watchdog: what is known of this rank's progress.
  using status = progress_status;
  status snapshot();
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
  void await_agreement();
  bool may_free(arrival call, const void* memory);
  void show_end(const communicator_end& e);
  void give_up_to_shrink();
  sucl_operation example(kind k, std::uint64_t bytes, type t, op o) const;

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
  shrinking m_shrinking;

  step_counts m_steps_begun;
  std::mutex m_control_mutex;  ///< taken before that of the queue, never after it
  /// Diagnoses on this machine that were read.
  std::atomic<std::uint64_t> m_seen_diagnosis{0};
  std::atomic<std::uint64_t> m_changes{0};
  std::atomic<bool> m_queued{false};  ///< known to the progress thread
  struct late_query {
    std::mutex one;  ///< thread asks at a time
    std::mutex mutex;
    std::condition_variable answered;
    std::optional<std::string> answer;
    std::atomic<bool> asks{false};
  } m_late;
  std::atomic<std::uint64_t> m_agreed{0};
  std::atomic<bool> m_awaits_agreement{false};
  std::atomic<bool> m_agreement_sent{false};  // on rank 0
  std::atomic<bool> m_unwinding{false};       ///< an exception has destroyed its handle
};

}  // namespace sucl::core
