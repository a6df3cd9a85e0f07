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
#include "interposer/requests/requests.hpp"
#include "process/process.hpp"

#include <mpi.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

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
  /// This process among those of the communicator.
  comm_position position_in(MPI_Comm comm) {
    int code = MPI_SUCCESS;
    const comm_state* p = find(comm, code);
    return p ? p->at : comm_position{0, 0};
  }

  /// Executes a blocking collective that `describe` describes, or has `pass` call MPI. Returns
  /// MPI's code. `lasts`: calls of the same signature are of the same class, if its type is MPI's
  /// own.
  template <class Describe, class Pass>
  static int blocking(const signature& s, bool lasts, const Describe& describe, const Pass& pass) {
    interposer* const self = active();
    if (!self || s.comm == MPI_COMM_NULL) return pass();
    const route& r = slot_of(s);
    const bool known = r.generation == m_generation.load(std::memory_order_acquire) && r.of == s;
    // The call_class may be measured again, because of other calls of its class.
    if (!known || (r.measured && r.measured->wants_measurement()))
      return self->serve_or_pass(s, lasts, describe, pass);
    if (r.measured && r.measured->tuner.next() == choice::sucl) {
      transfer t = describe(r.with->at);
      if (!t.known) return pass();
      r.measured->review();
      return self->serve_else(*r.with, r.measured, t, pass);
    }
    ++*r.passed;
    if (!r.measured) return pass();
    r.measured->review();
    call_class* const measured = r.measured;  // the route may be another one's afterwards
    const int code = pass();
    if (is_refused(code)) measured->take_back();
    return code;
  }

  /// The same for the non-blocking form, whose request `pass` would make.
  template <class Describe, class Pass>
  static int started(sucl_kind kind, MPI_Comm comm, MPI_Request* request, const Describe& describe,
                     const Pass& pass) {
    interposer* const self = active();
    if (!self || comm == MPI_COMM_NULL || !request) return pass();
    int code = MPI_SUCCESS;
    comm_state* const with = self->find(comm, code);
    if (!with) return code;
    comm_state& p = *with;
    transfer t;
    if (p.suitable) t = describe(p.at);
    call_class* c = nullptr;
    const outcome f = self->classify(p, t, form::started, &c);
    if (f != outcome::served) {
      self->count(p, kind, f);
      code = pass();
      if (is_refused(code)) ++p.refused;
      return code;
    }
    const turn now = self->turn_of(*c);
    if (now.to == choice::sucl) return self->begin(p, *c, now, std::move(t), request);
    self->count(p, kind, now.decided ? outcome::slower : outcome::tried);
    const stopwatch time;
    code = pass();
    if (is_refused(code)) ++p.refused, self->take_back(*c);
    if (now.timed && code == MPI_SUCCESS)
      self->m_requests.watch(*request, *c, now.number, time.seconds());
    return code;
  }

  /// The same for the persistent form, whose request `pass` makes in any case.
  template <class Describe, class Pass>
  static int persistent(sucl_kind kind, MPI_Comm comm, MPI_Request* request,
                        const Describe& describe, const Pass& pass) {
    interposer* const self = active();
    if (!self || comm == MPI_COMM_NULL || !request) return pass();
    int code = MPI_SUCCESS;
    comm_state* const with = self->find(comm, code);
    if (!with) return code;
    comm_state& p = *with;
    // A library that has refused the call may say that all is well, to a handler of the program's.
    const MPI_Request before = std::exchange(*request, MPI_REQUEST_NULL);
    code = pass();
    if (code != MPI_SUCCESS || *request == MPI_REQUEST_NULL) {
      *request = before;
      p.prepared.refuse();
      ++p.refused;
      return code;
    }
    transfer t;
    if (p.suitable) t = describe(p.at);
    const outcome f = self->prepare(p, t, *request);
    if (f != outcome::served) self->count(p, kind, f);
    return code;
  }

  // The same of calls that may have memory of devices: both SuCL and the library are given what
  // they take.

  template <class Describe, class Pass>
  static int blocking(const device::arguments& held, const signature& s, bool lasts,
                      const Describe& describe, const Pass& pass) {
    if (held.empty()) return held.code() ? held.code() : blocking(s, lasts, describe, pass);
    note_device(s.comm, s.kind);
    return blocking(s, lasts, on_host(held, describe), [&] {
      held.for_library();
      const device::staged_memory& staged = *held.staged();
      if (!staged.at_library) return pass();
      if (const int code = load(staged, s.comm)) return code;
      const int code = pass();
      return code == MPI_SUCCESS ? store(staged, s.comm) : code;
    });
  }

  template <class Describe, class Pass>
  static int started(const device::arguments& held, sucl_kind kind, MPI_Comm comm,
                     MPI_Request* request, const Describe& describe, const Pass& pass) {
    if (held.empty())
      return held.code() ? held.code() : started(kind, comm, request, describe, pass);
    note_device(comm, kind);
    return started(kind, comm, request, on_host(held, describe), [&] {
      held.for_library();
      const auto& staged = held.staged();
      if (!staged->at_library) return pass();
      if (const int code = load(*staged, comm)) return code;
      const int code = pass();
      if (code != MPI_SUCCESS || m_running->m_requests.keep(*request, comm, staged)) return code;
      return store(*staged, comm);
    });
  }

  template <class Describe, class Pass>
  static int persistent(const device::arguments& held, sucl_kind kind, MPI_Comm comm,
                        MPI_Request* request, const Describe& describe, const Pass& pass) {
    if (held.empty())
      return held.code() ? held.code() : persistent(kind, comm, request, describe, pass);
    note_device(comm, kind);
    const int code = persistent(kind, comm, request, on_host(held, describe), [&] {
      held.for_library();
      return pass();
    });
    if (code == MPI_SUCCESS && held.staged()->at_library)
      m_running->prepare_staged(comm, kind, *request, held.staged());
    return code;
  }

  /// Copies from devices, and to them. Returns MPI's code.
  static int load(const device::staged_memory& staged, MPI_Comm comm);
  static int store(const device::staged_memory& staged, MPI_Comm comm);

  /// Passes on what SuCL never executes.
  template <class Pass>
  static int leave(sucl_kind kind, MPI_Comm comm, const Pass& pass) {
    interposer* const self = active();
    if (!self || comm == MPI_COMM_NULL) return pass();
    int code = MPI_SUCCESS;
    comm_state* const p = self->find(comm, code);
    if (!p) return code;
    self->count(*p, kind, p->suitable ? outcome::unknown : outcome::unsupported_comm);
    return pass();
  }

  /// Starts a persistent request that is in the table.
  int start_prepared(pending& r);
  /// Takes the output out of a request that is done, once. Returns MPI's code.
  int deliver(pending& r);
  /// Ends a request of SuCL that is done, with its output if no function has said so before.
  int finish(pending& r);
  /// One that is not in the table any more has been freed.
  void release_prepared(pending& r);

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
  std::shared_ptr<core::communicator> make_core(const comm_state& p, bool& later);
  outcome classify(comm_state& p, const transfer& t, form f, call_class** found);
  turn turn_of(call_class& c);
  /// The call that has taken the last turn was none.
  void take_back(call_class& c);

  template <class Describe, class Pass>
  int serve_or_pass(const signature& s, bool lasts, const Describe& describe, const Pass& pass) {
    int code = MPI_SUCCESS;
    comm_state* const with = find(s.comm, code);
    if (!with) return code;
    comm_state& p = *with;
    transfer t;
    if (p.suitable) t = describe(p.at);
    lasts = lasts && facts_of(s.type).predefined;
    call_class* c = nullptr;
    const outcome f = classify(p, t, form::blocking, &c);
    if (f == outcome::served && (!c->tuner.decided() || c->review())) return tried(p, *c, t, pass);
    std::uint64_t& counter = counter_of(p, s.kind, f == outcome::served ? outcome::slower : f);
    // What is not known may be wrong this once.
    if (lasts && f != outcome::early && f != outcome::unknown)
      slot_of(s) = {s, m_generation.load(), &counter, &p, c};
    if (f == outcome::served && c->tuner.next() == choice::sucl) return serve_else(p, c, t, pass);
    ++counter;
    code = pass();
    if (!is_refused(code)) return code;
    if (f == outcome::early && waits_for_all(s.kind)) --p.calls;
    if (f == outcome::served) c->take_back();
    return code;
  }

  template <class Pass>
  int tried(comm_state& p, call_class& c, transfer& t, const Pass& pass) {
    const std::uint64_t number = c.tuner.started();
    const choice to = c.start();
    const stopwatch time;
    if (to == choice::mpi) count(p, t.called, outcome::tried);
    const int code = to == choice::mpi ? pass() : serve_else(p, nullptr, t, pass);
    if (to == choice::mpi && is_refused(code)) return take_back(c), code;
    if (!p.suitable) return code;
    if (c.note(number, time.seconds())) decide(p, c);
    return code;
  }
  /// Agrees with the other ranks on a class whose trials are over.
  void decide(comm_state& p, call_class& c);

  static std::uint64_t& counter_of(comm_state& p, sucl_kind kind, outcome f) {
    return p.counts[static_cast<std::size_t>(kind)].calls[static_cast<std::size_t>(f)];
  }
  static void count(comm_state& p, sucl_kind kind, outcome f) { ++counter_of(p, kind, f); }

  /// MPI's code; none where ranks do not agree, and the communicator is MPI's from here on.
  std::optional<int> serve(comm_state& p, const call_class* c, transfer& t);
  template <class Pass>
  int serve_else(comm_state& p, const call_class* c, transfer& t, const Pass& pass) {
    const std::optional<int> code = serve(p, c, t);
    return code ? *code : pass();
  }
  void leave_to_mpi(comm_state& p, const error& why);
  int begin(comm_state& p, call_class& c, const turn& now, transfer t, MPI_Request* request);
  int issue(pending& r);
  outcome prepare(comm_state& p, transfer& t, MPI_Request request);
  void prepare_staged(MPI_Comm comm, sucl_kind kind, MPI_Request request,
                      const std::shared_ptr<device::staged_memory>& staged);
  int start_at_library(pending& r);
  std::shared_ptr<persistent_slot> free_slot(comm_state& p);
  std::shared_ptr<persistent_slot> new_slot(comm_state& p);
  static void occupy(persistent_slot& slot, call_class by, int rank);
  void take_over_early(comm_state& p);
  void forget(comm_state& p);
  void print_summary();
  static int on_free(MPI_Comm comm, int key, void* value, void* self);
  /// Describes a call by the host memory that stands for a device's.
  template <class Describe>
  static auto on_host(const device::arguments& held, const Describe& describe) {
    return [&](comm_position at) {
      held.for_sucl();
      transfer t = describe(at);
      t.staged = held.staged();
      return t;
    };
  }
  static void note_device(MPI_Comm comm, sucl_kind kind);

  static interposer* m_running;
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
  MPI_Comm m_probed = MPI_COMM_NULL;  ///< on which there are no messages, for progress
  requests m_requests;
  std::atomic<int> m_cores{0};  ///< SuCL's communicators
  std::mutex m_mutex;           ///< guards what follows
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
