// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The interposer of this process: it starts and ends with MPI, and has one SuCL communicator for
/// each MPI communicator that the program uses.
#pragma once

#include "base/config/determinism.hpp"
#include "base/direct_cache.hpp"
#include "interposer/arguments/device_arguments.hpp"
#include "interposer/arguments/transfer.hpp"
#include "interposer/decision/call_class.hpp"
#include "interposer/decision/comm_state.hpp"
#include "interposer/decision/outcome.hpp"
#include "interposer/errors.hpp"
#include "interposer/function_ref.hpp"
#include "interposer/requests/requests.hpp"
#include "process/process.hpp"

#include <mpi.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace sucl::interposer {

/// What distinguishes blocking calls before anything is known of them. Equal ones, with types and
/// ops that are MPI's own, are of one class.
struct signature {
  MPI_Comm comm;
  sucl_kind kind;
  std::int64_t count;
  MPI_Datatype type;
  MPI_Op op;
  int root;
  bool operator==(const signature&) const = default;
};

/// What was decided for calls of a signature, in the thread that makes them.
struct route {
  signature of;
  std::uint64_t generation;
  std::uint64_t* passed;  ///< counts those that MPI executes
  comm_state* with;
  call_class* measured;  ///< null where there is nothing to be tried: MPI goes
};

/// While one exists the program frees a communicator in this thread. What callbacks for attributes
/// call on it meanwhile is passed on: they come in any order, before or after SuCL's own.
class being_freed {
 public:
  explicit being_freed(MPI_Comm comm);
  ~being_freed();
  being_freed(const being_freed&) = delete;
  being_freed& operator=(const being_freed&) = delete;

  /// What stands for the communicator, or null if this thread does not free it.
  static comm_state* find(MPI_Comm comm);

 private:
  comm_state m_state;
  being_freed* m_outer;  ///< a callback may free another one
};

/// What a thread has at hand. Zero at first.
struct thread_state {
  int inside;    ///< SuCL calls MPI by its usual names, which come back here
  int passed;    ///< the program's call has been passed on
  int profiled;  ///< the program has called by a profiling name
  MPI_Comm latest;
  comm_state* latest_state;
  std::uint64_t latest_generation;
  being_freed* freed;
  base::direct_cache<route, 64> routes;
};

/// The process.
class interposer {
 public:
  /// Null unless SuCL has started, and while SuCL itself calls MPI.
  static interposer* active() { return here().inside > 0 ? nullptr : m_running; }
  /// The same for functions that take requests. What is still under way when MPI ends can be
  /// completed in callbacks for attributes of MPI_COMM_SELF, which are MPI's first step then.
  static interposer* completing() { return here().inside > 0 ? nullptr : m_completing; }

  /// Whether it is SuCL itself that calls MPI.
  static bool is_inside() { return here().inside > 0; }
  /// Whether a call by a profiling name is SuCL's own, or one of what it has passed a call on to.
  static bool is_passed_on() { return here().inside > 0 || here().passed > 0; }
  /// Whether the program itself calls by a profiling name, which tools do not see.
  static bool is_profiled() { return here().profiled > 0; }

  /// Before MPI's initialisation: ends the process if this is the interposer of another MPI.
  static void before_start();
  /// After MPI's initialisation. Collective. Where it fails everything is passed on.
  static void start();
  /// Before MPI's end. Collective.
  static void stop();

  requests& table() { return m_requests; }
  /// This process among those of the communicator; none if MPI says that it is no communicator,
  /// which `code` is then: the program has been told.
  std::optional<comm_position> position_in(MPI_Comm comm, int& code) {
    const comm_state* p = find(comm, code);
    return p ? std::optional(p->at) : std::nullopt;
  }

  /// Describes a call to SuCL, for this process's position in the communicator.
  using describer = function_ref<transfer(comm_position)>;
  /// Has the library execute the call. Returns MPI's code.
  using library_call = function_ref<int()>;

  /// Executes a blocking collective that `describe` describes, or has `pass` call MPI. Returns
  /// MPI's code. `lasts`: calls of the same signature are of the same class, if its type is MPI's
  /// own.
  static int blocking(const signature& s, bool lasts, describer describe, library_call pass);
  /// The same for the non-blocking form, whose request `pass` would make.
  static int started(sucl_kind kind, MPI_Comm comm, MPI_Request* request, describer describe,
                     library_call pass);
  /// The same for the persistent form, whose request `pass` makes in any case.
  static int persistent(sucl_kind kind, MPI_Comm comm, MPI_Request* request, describer describe,
                        library_call pass);

  // The same of calls that may have memory of devices: both SuCL and the library are given what
  // they take.
  static int blocking(const device::arguments& held, const signature& s, bool lasts,
                      describer describe, library_call pass);
  static int started(const device::arguments& held, sucl_kind kind, MPI_Comm comm,
                     MPI_Request* request, describer describe, library_call pass);
  static int persistent(const device::arguments& held, sucl_kind kind, MPI_Comm comm,
                        MPI_Request* request, describer describe, library_call pass);

  /// Copies from devices, and to them. Returns MPI's code.
  static int load(const device::staged_memory& staged, MPI_Comm comm);
  static int store(const device::staged_memory& staged, MPI_Comm comm);

  /// Passes on what SuCL never executes.
  static int leave(sucl_kind kind, MPI_Comm comm, library_call pass);

  /// Starts a persistent request that is in the table.
  int start_prepared(pending& r);
  /// Takes the output out of a request that is done, once. Returns MPI's code; the error is still
  /// to be reported.
  int deliver(pending& r, found_errors& errors);
  /// Ends a request of SuCL that is done, with its output if no function has said so before.
  int finish(pending& r, found_errors& errors);
  /// One that is not in the table any more has been freed.
  void release_prepared(pending& r);
  /// Notes the end of a request; what it was the last one of ends as well.
  void close(pending& r);

  /// What must go on while the program waits: other requests, and MPI's own.
  void go_on();

 private:
  struct turn {
    choice to;
    std::uint64_t number;
    bool decided;
    bool timed;
  };

  interposer(base::config settings, const sucl_bootstrap& control);
  const base::config& settings() const { return m_process->settings(); }
  bool is_strict() const { return settings().determinism == base::name(base::determinism::strict); }
  bool sets_up_at_once() const { return settings().interpose.after == 0 || is_strict(); }
  static route& slot_of(const signature& s);
  /// Null if MPI says that it is no communicator, which `code` is then: the program has been told.
  comm_state* find(MPI_Comm comm, int& code);
  comm_state& make_state(MPI_Comm comm);
  void adopt(comm_state& p);
  void set_up(MPI_Comm comm) {
    comm_state& p = make_state(comm);
    if (p.suitable) adopt(p);
  }
  std::shared_ptr<core::communicator> make_core(comm_state& p, int wanted, bool& later);
  int wanted_calls() const;
  void learn_from(const comm_state& p);
  outcome classify(comm_state& p, const transfer& t, form f, call_class** found);
  turn turn_of(call_class& c);
  /// The call that has taken the last turn was none.
  void take_back(call_class& c);

  int serve_or_pass(const signature& s, bool lasts, describer describe, library_call pass);
  int tried(comm_state& p, call_class& c, transfer& t, library_call pass);
  /// Agrees with the other ranks on a class whose trials are over.
  void decide(comm_state& p, call_class& c);

  static std::uint64_t& counter_of(comm_state& p, sucl_kind kind, outcome f) {
    return p.counts[static_cast<std::size_t>(kind)].calls[static_cast<std::size_t>(f)];
  }
  static void count(comm_state& p, sucl_kind kind, outcome f) { ++counter_of(p, kind, f); }

  /// MPI's code; none where ranks do not agree, and the communicator is MPI's from here on. An
  /// error is still to be reported.
  std::optional<int> serve(comm_state& p, const call_class* c, transfer& t, found_errors& errors);
  int serve_else(comm_state& p, const call_class* c, transfer& t, library_call pass);
  void show_others(comm_state& p);
  void leave_to_mpi(comm_state& p, const error& why);
  // How many calls are over on the communicator where the next one is the first that is not; more
  // than any if that cannot be known.
  std::uint64_t calls_before(core::communicator& core) const;
  // Whether a call with so many before it is the one in which ranks differ, and this rank only
  // gave: it may have ended before that was found, so it ends alike. The others say what is wrong.
  static bool is_given_in_vain(const error& e, const transfer& t, core::communicator& core,
                               std::uint64_t before);
  int begin(comm_state& p, call_class& c, const turn& now, transfer t, MPI_Request* request);
  int issue(pending& r, found_errors& errors);
  outcome prepare(comm_state& p, transfer& t, MPI_Request request);
  void prepare_staged(MPI_Comm comm, sucl_kind kind, MPI_Request request,
                      const std::shared_ptr<device::staged_memory>& staged);
  int start_at_library(pending& r);
  std::shared_ptr<persistent_slot> free_slot(comm_state& p);
  std::shared_ptr<persistent_slot> new_slot(comm_state& p);
  static void occupy(persistent_slot& slot, call_class by, int rank);
  void take_over_early(comm_state& p);
  void forget(comm_state& p);
  void end(core::communicator& core) noexcept;
  void print_summary();
  static int on_free(MPI_Comm comm, int key, void* value, void* self);
  static void note_device(MPI_Comm comm, sucl_kind kind);

  static interposer* m_running;
  static interposer* m_completing;
  static std::atomic<std::uint64_t> m_generation;
  static thread_state& here() { return m_here ? *m_here : make_here(); }
  static thread_state& make_here();
  // Small enough to be within reach without a call where the library is loaded later.
  static constinit thread_local thread_state* m_here __attribute__((tls_model("initial-exec")));
  friend struct own_call;
  friend struct passing;
  friend struct profiled;
  friend class being_freed;

  std::shared_ptr<core::process> m_process;
  int m_key = MPI_KEYVAL_INVALID;
  MPI_Comm m_probed = MPI_COMM_NULL;  ///< the world, without messages, for progress
  requests m_requests;
  std::atomic<int> m_cores{0};         ///< SuCL's communicators
  std::atomic<int> m_wanted_calls{0};  ///< see wanted_calls()
  std::mutex m_mutex;                  ///< guards what follows
  std::map<comm_state*, std::unique_ptr<comm_state>> m_comms;
  counters_by_kind m_totals{};  ///< of partners that are gone
};

// SuCL's communicators: each takes some of MPI's, which are few in some libraries.
constexpr int max_cores = 48;
// Persistent requests of one communicator that SuCL executes at a time.
constexpr std::size_t max_slots = 16;

/// While one exists, MPI's functions that this thread calls are those of the library.
struct own_call {
  own_call() { ++interposer::here().inside; }
  ~own_call() { --interposer::here().inside; }
  own_call(const own_call&) = delete;
  own_call& operator=(const own_call&) = delete;
};

/// While one exists, this thread is in what a call was passed on to.
struct passing {
  passing() { ++interposer::here().passed; }
  ~passing() { --interposer::here().passed; }
  passing(const passing&) = delete;
  passing& operator=(const passing&) = delete;
};

/// While one exists, this thread is in a function that was called by its profiling name.
struct profiled {
  profiled() { ++interposer::here().profiled; }
  ~profiled() { --interposer::here().profiled; }
  profiled(const profiled&) = delete;
  profiled& operator=(const profiled&) = delete;
};

}  // namespace sucl::interposer
