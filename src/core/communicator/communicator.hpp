// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A communicator without SYCL: issue order, progress, completion.
#pragma once

#include "base/direct_cache.hpp"
#include "core/communicator/failure_state.hpp"
#include "core/communicator/op_request.hpp"
#include "core/communicator/tuned_pace.hpp"
#include "core/control/job.hpp"
#include "core/exchange/topology.hpp"
#include "core/failure/setup_steps.hpp"
#include "core/layers/validate.hpp"
#include "core/operation/operation.hpp"
#include "core/selection/backend_set.hpp"
#include "core/selection/compile_request.hpp"
#include "core/support/biased_mutex.hpp"
#include "core/support/forked.hpp"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace sucl::core {

class device_errors;
struct hierarchical_queue;
struct prepared_run;

/// A counted reference to an issued operation.
class ticket {
 public:
  ticket() = default;
  explicit ticket(op_request* n) : m_node(n) {
    if (m_node) m_node->references.fetch_add(1, std::memory_order_relaxed);
  }
  ticket(const ticket& other) : ticket(other.m_node) {}
  ticket(ticket&& other) noexcept : m_node(std::exchange(other.m_node, nullptr)) {}
  ticket& operator=(ticket other) noexcept {
    std::swap(m_node, other.m_node);
    return *this;
  }
  ~ticket() {
    if (m_node) m_node->references.fetch_sub(1, std::memory_order_release);
  }
  /// Whether the operation is done or has failed.
  bool done() const {
    return m_node->at.load(std::memory_order_acquire) == op_request::phase::done;
  }
  /// How it failed, once it is done.
  const std::optional<error_info>& failure() const { return m_node->failure; }
  op_request* get() const { return m_node; }

 private:
  op_request* m_node = nullptr;
};

/// What issue() did.
struct issue_result {
  ticket operation;
  bool done = false;  ///< it is done or has failed, and the observer will not be notified
};

/// What the device side of a communicator knows of operations that it has put on native streams:
/// for the core these are over once they are posted. Functions may be null.
struct stream_work {
  void* context = nullptr;
  /// Since when the oldest of them has been unfinished, as far as is known; nothing if none is.
  /// Never blocks.
  std::optional<clock::time_point> (*pending_since)(void* context) = nullptr;
  /// Whether commands of the program stand before the oldest of them. Never blocks.
  bool (*is_held)(void* context) = nullptr;
  /// Returns when all of them are done.
  void (*drain)(void* context) = nullptr;
};

/// What the device side of a communicator provides to it.
struct device_services {
  /// Keeps what the others point to: a thread of the core may be the last to let go of the
  /// communicator.
  std::shared_ptr<void> owner;
  self_description self;
  device_copier* copier = nullptr;  ///< null if the host reads all device memory
  void* native_device = nullptr;
  void* native_context = nullptr;
  kernel_device* kernels = nullptr;            ///< null: the device runs no kernels of SuCL's
  hierarchical_queue* hierarchical = nullptr;  ///< null: the device has no native streams
  const device_errors* errors = nullptr;       ///< of a device with native streams
  stream_work streams;
  /// Of host memory that the device reaches, for staging; null: ordinary memory.
  scratch_pool::allocate_function allocate = nullptr;
  scratch_pool::free_function free = nullptr;
  void* memory_context = nullptr;
};

/// A blocking operation that is run over and over, and which backend executes it.
struct persistent_call {
  sucl_operation record{};                ///< normalised; arrays must stay
  const backend_instance* via = nullptr;  ///< null: it has not run yet
  std::uint64_t epoch = 0;  ///< what is known of it holds while the communicator's is the same
  /// How it runs where that is worked out; not asked for before it is repeated.
  std::optional<std::shared_ptr<prepared_run>> prepared;
};

/// The issue queue of one communicator.
///
/// Operations are posted to backends in issue order, each as soon as it is ready and the one before
/// it is posted completely; once posted they progress side by side. Progress is made by any thread
/// that calls progress(): the engine's thread, a caller that waits, or one that polls for a moment
/// after issuing.
class SUCL_CORE_API communicator : public std::enable_shared_from_this<communicator> {
 public:
  /// Takes over `group`. Collective. `is_part`: of another communicator, which ends it, and which
  /// is watched in its stead.
  communicator(std::shared_ptr<job> owner, sucl_group* group, device_services device,
               bool is_part = false);
  ~communicator();
  communicator(const communicator&) = delete;
  communicator& operator=(const communicator&) = delete;

  int rank() const { return m_topology.rank; }
  int size() const { return static_cast<int>(m_topology.members.size()); }
  const topology& where() const { return m_topology; }
  const std::string& label() const { return m_label; }

  /// Issues an operation whose record is normalised. Copies its arrays and parts. `ready`: nothing
  /// has to be waited for; such an operation is posted, and polled for a moment, before the
  /// function returns. `blocking`: for a blocking call; the caller calls wait() at once.
  issue_result issue(const sucl_operation& record, const layouts& shape, bool ready,
                     const observer& watch, bool blocking = false);

  /// A collective was called with arguments that are wrong on this rank, and its caller gets the
  /// error. Where arguments are compared between ranks it takes its place among the operations, so
  /// that the others get it too; otherwise nothing happens. Never throws.
  void refuse(const sucl_operation& record, const error_info& wrong) noexcept;
  /// The same of an operation that was issued and is not ready: it fails instead of starting.
  void refuse(const ticket& t, const error_info& wrong);

  /// Issues an operation that is going to be posted on a native stream, by post_on_stream(), which
  /// must be called for these operations in the order of their issue. Nothing if its backend cannot
  /// order it there, or if something before it has to be posted by the host first: then it is one
  /// for issue(). `shape` and the kinds of memory must be final, addresses need not be.
  std::optional<ticket> issue_on_stream(const sucl_operation& record, const layouts& shape);

  /// Whether it would do so now. The answer of a communicator that is part of another one, for
  /// the thread that issues all its operations.
  bool would_order_on_stream(const sucl_operation& record);

  /// Posts it; its memory is in the record, or in op_request::parts. From inside the command that
  /// owns the stream's order at that moment. Never throws: failures are kept for check().
  void post_on_stream(const ticket& t, void* stream) noexcept;

  /// Whether an operation would go to a backend that launches kernels.
  bool launches(const sucl_operation& record);
  /// Whether it is for post_launch() instead.
  static bool launches(const ticket& t) { return t.get()->via->traits.launches; }
  /// The same for a backend that launches kernels: in the thread that has issued the operation, at
  /// once. `target` names the queue.
  void post_launch(const ticket& t, void* target) noexcept { post_on_stream(t, target); }

  /// Whether device memory would go through scratch memory of the host on its way to whichever
  /// backend executes a send or recv.
  bool stages(const sucl_operation& message);
  /// Takes memory of the host for a message in the place of its device memory, which the issuer
  /// copies from, before the message is ready, or to, once it is done. Only before it is ready.
  static void use_bounce_buffer(const ticket& t, void* host) { t.get()->bounce_buffer = host; }

  /// The operation may start. `send` and `recv`, unless null, replace the record's memory.
  void mark_ready(const ticket& t, const void* send, void* recv);
  /// The same where the memory is in the record already, or was written into op_request::parts.
  void mark_ready(const ticket& t);

  /// Issues an operation that is ready and returns when it is done. Throws what fails. `asked`,
  /// unless null, is what run_cached() may be given next time: the whole call, as it came.
  void run(const sucl_operation& record, const layouts& shape,
           const sucl_operation* asked = nullptr) {
    run(record, shape, asked, nullptr);
  }

  /// Does the same for a call that is known to be right, because the same one has run before; false
  /// if it is not known, or not alone. Programs call the same operation over and over, and most of
  /// what a short one costs is finding out what is known already.
  bool run_cached(const sucl_operation& asked);

  /// The same for who keeps the call: the first time, and while operations are in flight, it is
  /// run(); afterwards nothing is looked up. One thread at a time for one call.
  void run_cached(persistent_call& call);

  /// Something that an operation waits for has changed: the progress thread should look.
  void wake();

  /// Helps until the ticket is done, then throws its failure, if any.
  void wait(const ticket& t);
  /// Helps until the ticket is done. Meanwhile the progress thread rests.
  void assist(const ticket& t);
  /// Helps until everything issued is done, then check().
  void wait_all();
  /// Throws the first failure of an operation that was not reported yet.
  void check();
  /// Whether ranks have to be asked now and then what they have had kernels do.
  bool compares_calls() const { return m_backends.compares_calls(); }
  /// Asks them; whether they differ. Never waits.
  bool compare_calls();

  /// Whether a thread is inside assist() and makes progress.
  bool assisted() const { return m_assistants.load(std::memory_order_acquire) > 0; }

  /// Makes progress without waiting. False if nothing is to be done until something is issued or
  /// becomes ready. `finished`, unless null, counts operations that this call completed.
  bool progress(int* finished = nullptr);

  /// Memory of the host for `bytes` bytes that every rank of the node reaches, so that collectives
  /// on it need no copies; ordinary memory where that cannot be. Zeroed, on pages of its own, of
  /// any size on each rank. Lives until deallocate() or the end of the communicator. Collective;
  /// blocks; errc::out_of_memory on every rank if one has none.
  void* allocate(std::uint64_t bytes);
  /// Collective; nothing in flight may use it. errc::invalid_memory for any other pointer.
  void deallocate(void* memory);

  /// Has the kernels of other ranks reach memory of the device too, of any size on each rank, until
  /// detach() of the same; whether all of them do. Collective; blocks.
  bool attach(void* memory, std::uint64_t bytes);
  /// Collective; nothing in flight may use it.
  void detach(void* memory);

  /// Makes a plan of a composition, verified, with its scratch. Collective; blocks. Throws on every
  /// rank what is wrong on any.
  compiled_facts compile(const compile_request& request);
  /// Gives it back, once nothing in flight runs it.
  void forget_compiled(std::uint64_t number) noexcept;

  /// Memory that the ranks of the communicator share, zeroed; not for operations. Null where there
  /// is none that every rank reaches. Lives as long as the communicator. Collective; blocks.
  std::byte* common_memory(std::uint64_t bytes);
  /// Goes by another tuning table from now on; null: by none. Collective; nothing is in flight.
  void use_table(std::shared_ptr<const tune::table> table);
  /// The same by the text of a table, which must be the same on every rank; empty: by none. Waits
  /// for what is in flight. Throws on every rank, and changes nothing, if it is wrong on any.
  void use_tuning(const std::string& toml);

  /// Which backend would execute this by event.
  std::string selected_backend_by_event(kind k, std::uint64_t bytes, type t, op o);
  /// Which backend would execute this, and why.
  std::string explain(kind k, std::uint64_t bytes, type t, op o);
  /// Its name, for a record whose arrays are complete and a call of the blocking form or not.
  std::string selected_backend_of(const sucl_operation& record, bool blocking = true);
  /// Whether that one does without MPI, so that any thread may make its progress.
  bool any_thread_executes(const sucl_operation& record, bool blocking = true);
  /// Why plans do not execute a record by a row of a tuning table, if that is the first one that
  /// fits; empty: they do. The same on every rank.
  std::string plan_obstacle(const tune::table_row& row, const sucl_operation& record);

  /// Begins a step of set-up in which all ranks of it wait for each other; see setup_step.
  std::unique_ptr<setup_step> begin_step(const char* what);

  /// Collective.
  std::shared_ptr<communicator> split(int colour, int key, device_services device);

  /// Ends the communicator: everything still in flight is waited for, or, if it failed, given up.
  /// Afterwards each call is errc::shut_down.
  void shut_down(bool drain);

  /// Gives up everything with this error; later calls throw it. From the watchdog.
  void fail_all(const error_info& info);
  /// The same where the program has been told, or is about to be, of what is behind it.
  void abandon(const error_info& info);
  /// The same for what has failed on this rank alone: the others get the error, and fail too.
  void fail_everywhere(const error_info& info);
  /// Asks the device whether a kernel of this process has failed on it, and then does so.
  void check_device();

  // For the watchdog: what is known of this rank's progress.
  struct status {
    std::uint64_t posted = 0;  ///< number of the last collective that was posted
    std::uint64_t issued = 0;
    bool busy = false;
    sucl_operation oldest{};  ///< of those ready or posted, while busy
    bool on_stream = false;   ///< it is on a native stream
    bool held = false;        ///< what is on the stream waits for commands of the program
    clock::time_point since;
  };
  status snapshot();
  /// Keeps the control group, and with it the communicator, from ending meanwhile.
  std::unique_lock<std::mutex> hold_control_group() { return std::unique_lock(m_control_mutex); }
  sucl_group* control_group() const { return m_group; }
  std::uint64_t id() const { return m_id; }
  bool alive() const { return !m_ended.load(std::memory_order_acquire) && !forked(); }

 private:
  void make(int rank, int size);
  op_request* take_request();
  void fill(op_request& n, const sucl_operation& record, const layouts& shape, bool blocking);
  void pump();
  void post(op_request& n);
  void replace_memory(op_request& n) const;
  void post_native(op_request& n);
  bool orders_on_stream(const sucl_operation& record, const layouts& shape,
                        const backend_instance& c);
  bool may_go_on_stream(const sucl_operation& record, const layouts& shape,
                        const backend_instance& c);
  sucl_group* split_group(int colour, int key);
  std::shared_ptr<communicator> make_part(int colour, int key);
  void drain_streams();
  void read_published_diagnosis();
  void deliver_done(std::unique_lock<biased_mutex>& lock);
  bool test(op_request& n);
  void finish(op_request& n, const error_info* error);
  bool may_post(const sucl_operation& next) const;
  bool may_run(op_request& n);
  void throw_if_shut_down() const;
  bool progress_locked(std::unique_lock<biased_mutex>& lock, int* finished, bool may_enter);
  void progress_others();
  void throw_if_ended() {
    if (m_ended.load(std::memory_order_acquire) || m_failures.any() || forked() ||
        m_backends.mismatched())
      rethrow_pending();
    m_backends.check();
  }
  void rethrow_pending();
  void give_up(const error_info& info);
  void give_up_mismatched();
  void note_reported();
  void settle_calls();
  void wait_for_direct(std::unique_lock<biased_mutex>& lock);
  void* allocate_plain(std::uint64_t bytes);
  void meet();
  void compare_device() const;
  sucl_operation example(kind k, std::uint64_t bytes, type t, op o) const;
  bool may_run_directly(const sucl_operation& record) const;
  const backend_instance* message_backend_for(const sucl_operation& record, const layouts& shape);
  void run_message(const sucl_operation& record, const backend_instance& c,
                   std::unique_lock<biased_mutex>& lock);
  // Whether a call may go past the queue to the backend that executed it last time.
  bool knows(const persistent_call& call) const {
    return call.via && call.epoch == m_cache_epoch && m_waiting.empty() && m_flight.empty() &&
           !m_direct.load(std::memory_order_relaxed);
  }
  void repeat(persistent_call& call, std::unique_lock<biased_mutex>& lock);
  void remember(const sucl_operation& asked, const persistent_call& call);
  void run(const sucl_operation& record, const layouts& shape, const sucl_operation* asked,
           persistent_call* kept);
  bool needs_independent_progress(const backend_instance& c) const;
  void run_directly(sucl_operation& record, const layouts& shape, const backend_instance& c,
                    std::unique_lock<biased_mutex>& lock);
  void run_native(const sucl_operation& direct, const backend_instance& c);
  void run_packed(const sucl_operation& direct, const layouts& shape, const backend_instance& c);
  void deliver(std::vector<op_request*>& done);
  std::chrono::nanoseconds spin_limit_for(const sucl_operation& record) const;
  std::uint64_t number(sucl_kind kind);
  error_info caught(const sucl_operation& record) const;

  std::shared_ptr<job> m_job;
  sucl_group* m_group;
  const bool m_is_part;
  topology m_topology;
  std::uint64_t m_id = 0;
  std::string m_label;
  step_counts m_steps_begun;
  device_services m_device;
  scratch_pool m_scratch;
  std::shared_ptr<const tune::table> m_tuned;
  tuned_pace m_pace;  ///< of blocking operations
  backend_set m_backends;
  std::optional<validator> m_validator;                         ///< where arguments are compared
  std::uint64_t m_allocations = 0;                              ///< so far
  std::uint64_t m_compiled = 0;                                 ///< plans, so far
  std::vector<sucl_region> m_common;                            ///< of common_memory()
  std::vector<std::unique_ptr<void, void (*)(void*)>> m_plain;  ///< allocated, not mapped
  staging m_staging;

  std::mutex m_control_mutex;  ///< taken before m_mutex, never after it
  biased_mutex m_mutex;        ///< guards what follows, and every call into backends
  std::vector<std::unique_ptr<op_request>> m_requests;
  std::vector<op_request*> m_free;
  std::deque<op_request*> m_waiting;  ///< issued, not posted; in order
  std::vector<op_request*> m_flight;  ///< posted, not done; in order
  std::vector<op_request*> m_done;    ///< finished, observer not notified yet
  std::atomic<bool> m_direct{false};  ///< a caller is inside a blocking backend call; set locked
  struct cached_call {
    sucl_operation asked{};  ///< as it came
    persistent_call call;
    std::vector<std::uint64_t> arrays;        ///< of both
    std::vector<sucl_operation> asked_parts;  ///< of a group
    std::vector<sucl_operation> parts;        ///< the same, of `call`
  };
  static std::uint64_t key_of(const sucl_operation& asked);
  base::direct_cache<cached_call, 16> m_call_cache{};  ///< blocking calls
  std::uint64_t m_cache_epoch = 1;  ///< changes with the tuning table and with memory
  std::uint64_t m_collectives = 0;  ///< issued so far
  std::uint64_t m_collectives_posted = 0;
  failure_state m_failures;
  /// Of the operation that comes next: since when it has been seen ready.
  std::pair<clock::time_point, clock::time_point> m_seen_ready;  ///< by when it was issued
  std::atomic<std::uint64_t> m_seen_diagnosis{
      0};                             ///< diagnoses on this machine that were looked at
  sucl_operation m_last_on_stream{};  ///< the last one posted on a stream
  std::atomic<bool> m_ended{false};
  std::atomic<bool> m_queued{false};  ///< known to the engine
  std::atomic<int> m_assistants{0};   ///< threads inside assist()
  friend class progress_thread;
};

}  // namespace sucl::core
