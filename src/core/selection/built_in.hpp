// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The one interface of the backends that are part of the library. What is not in it the core does
/// not know of them: a new one is a folder in src/backends and a row in
/// src/base/config/built_in_backends.def.
#pragma once

#include "base/config/determinism.hpp"
#include "core/operation/backend_comm.hpp"
#include "core/operation/captured.hpp"
#include "core/selection/call_board.hpp"
#include "core/selection/compile_request.hpp"
#include "core/selection/selection.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sucl::core {

class backend_creation;
struct backend_instance;

/// An operation that a backend has worked out once, to run it over and over on the same memory.
struct prepared_run;

/// What the ranks of a communicator do of a plan for more ranks.
struct plan_part;

/// A plan that a program has compiled, before every rank has agreed to it.
struct plan_draft {
  virtual ~plan_draft() = default;
  compiled_facts facts;
  std::uint64_t identity = 0;  ///< equal where ranks have compiled the same
  void* scratch = nullptr;     ///< of a part, this rank's own, once it is allocated
};

/// How the core has to treat a backend on a communicator.
struct backend_traits {
  /// It makes progress while a thread is inside another backend.
  bool independent_progress = false;
  /// It stands still meanwhile although other ranks may need it: nothing may block inside another
  /// backend while it has an operation in flight.
  bool needs_progress = false;
  /// Whatever thread calls test() makes its progress: it does without MPI.
  bool any_thread = false;
  /// post() launches kernels on the queue of `launch_target`.
  bool launches = false;
  /// A blocking post() has spun for as long as that helps.
  bool spins = false;
  /// What it has in flight ends by itself once ranks of a node have called different operations.
  bool ends_on_mismatch = false;
  /// It folds in the same order in every run.
  bool folds_alike = false;
  /// It is made of operations on communicators of its own.
  bool composed = false;
};

/// A built-in backend on one communicator, beside its table of functions. What a backend does not
/// override it does not have. The communicator calls one function at a time, under its lock unless
/// stated otherwise.
class built_in_comm {
 public:
  built_in_comm() = default;
  virtual ~built_in_comm() = default;
  built_in_comm(const built_in_comm&) = delete;
  built_in_comm& operator=(const built_in_comm&) = delete;

  /// How it would execute an operation, in whole lines for explain().
  virtual std::string describe(const sucl_operation&) { return {}; }
  /// Uses another tuning table from now on, which must outlive this object; null: none. Nothing is
  /// in flight.
  virtual void retune(const tune::table*) {}

  /// Throws what has failed since and no call has thrown. Called before every operation of a
  /// backend for which checks() is true.
  virtual void check() {}
  virtual bool checks() const { return false; }

  /// What the ranks have called; null: it does not compare that. As long as this object.
  virtual const call_board* board() const { return nullptr; }
  /// Of a board with an alarm: whether all is over here that comes before the call that differs.
  /// Any thread.
  virtual bool meets_alarm() const { return true; }
  /// And how many of the calls that it has are over here. Any thread.
  virtual std::uint64_t calls_over() const { return 0; }
  /// Whether its operations that come before such a call end as ever, though others do not.
  virtual bool ends_in_order() const { return false; }
  /// Compares what ranks have called, for backends that do not while they run: see compares().
  virtual void compare_calls() {}
  virtual bool compares() const { return false; }
  /// Ranks were found to have called different operations: what waits for them ends. Any thread.
  virtual void report_mismatch(const std::string& what) {
    if (const call_board* b = board()) b->report_mismatch(what);
  }
  /// Whether the other ranks have followed what this one has begun, or a mismatch was found.
  virtual bool followed() const { return true; }
  /// Makes kernels end that may wait for ranks that have called something else.
  virtual void end_kernels() {}

  /// Whether an operation of the host can be ordered on a native stream now.
  virtual bool orders_on_stream(const sucl_operation&) { return true; }

  /// Of a backend that launches kernels: whether it has to know the addresses of this operation's
  /// memory when it launches them. Those of buffers are known to a command of the device only.
  virtual bool needs_addresses(const sucl_operation&) const { return false; }

  /// Whether commands of post() that go to a graph of the device may be replayed: those between
  /// begin_capture(), which says whether it can be, and end_capture(). Nothing of them runs.
  virtual bool begin_capture() { return false; }
  virtual captured_kernels end_capture() { return {}; }
  /// Whether they may be replayed now.
  virtual bool may_replay(const captured_kernels&) const { return false; }
  /// Counts them as called; what is to be written before the graph is launched.
  virtual graph_base replay(const captured_operations&) { return {}; }

  /// Works an operation out that is run again and again. Null: it cannot be known before. Holds
  /// until retune(), add_memory() or remove_memory().
  virtual std::shared_ptr<prepared_run> prepare(const sucl_operation&) { return nullptr; }
  /// Runs it, if nothing else is in flight and its peers are near; otherwise the same operation
  /// must be posted next.
  virtual bool run(const prepared_run&) { return false; }
  /// Whether start_message() may be called.
  virtual bool starts_messages() const { return false; }
  /// Starts a message for a caller that blocks until it is done, and makes progress for as long as
  /// peers that are near need. Null: it is done. Throws what fails.
  virtual sucl_request* start_message(const sucl_operation&) { return nullptr; }

  /// Whether a message of that rank and tag is here that no receive has taken. Nothing: it cannot
  /// be known.
  virtual std::optional<bool> arrived(int /*from*/, int /*tag*/) { return std::nullopt; }

  /// Whether allocate(), attach() and free() give memory of a device that all ranks map.
  virtual bool allocates() const { return false; }
  /// Zeroed memory for operations of a higher sequence number. Collective; blocks; without the
  /// lock.
  virtual void* allocate(std::uint64_t /*bytes*/, std::uint64_t /*sequence*/) { return nullptr; }
  /// Maps memory of the program; whether all ranks do. Collective; blocks; without the lock.
  virtual bool attach(void*, std::uint64_t /*bytes*/, std::uint64_t /*sequence*/) { return false; }
  /// Ends either; false if it is not such memory.
  virtual bool free(void*) { return false; }

  /// Whether it takes memory over that the ranks of the node share, for operations on it.
  virtual bool keeps_shared_memory() const { return false; }
  /// Operations of a higher sequence number may be on that memory. `number` is the same on every
  /// rank.
  virtual void add_memory(const sucl_region&, std::uint64_t /*number*/,
                          std::uint64_t /*sequence*/) {}
  /// Operations of a higher sequence number are not. Whether it gives memory back that it kept, and
  /// what it is.
  virtual bool remove_memory(void* /*base*/, std::uint64_t /*sequence*/, sucl_region*) {
    return false;
  }

  /// Whether plans of programs may be given to the functions below.
  virtual bool runs_custom_plans() const { return false; }
  /// Lowers and verifies a composition. No communication; without the lock.
  virtual std::unique_ptr<plan_draft> draft(const compile_request&, base::determinism) {
    return nullptr;
  }
  /// Whether it runs parts of plans, in waves: `root` of the operation says which.
  virtual bool runs_parts() const { return false; }
  /// Lowers a part. As draft().
  virtual std::unique_ptr<plan_draft> draft_part(const plan_part&) { return nullptr; }
  /// Makes the scratch memory that it needs. Collective; blocks; without the lock.
  virtual void allocate_scratch(plan_draft&) {}
  /// Operations of this number run it.
  virtual void add_plan(std::uint64_t /*number*/, std::unique_ptr<plan_draft>) {}
  /// Forgets it. Nothing runs it.
  virtual void remove_plan(std::uint64_t /*number*/) {}
  /// Why it does not execute an operation by a row of a tuning table, if that is the first one that
  /// fits; empty: it does. The same on every rank.
  virtual std::string obstacle(const tune::table_row&, const sucl_operation&) { return {}; }
};

/// A backend that is part of the library. Stateless; one object for the whole process.
class built_in_backend {
 public:
  built_in_backend() = default;
  virtual ~built_in_backend() = default;
  built_in_backend(const built_in_backend&) = delete;
  built_in_backend& operator=(const built_in_backend&) = delete;

  /// As in the configuration. One that is not there serves a process that is alone.
  virtual const char* name() const = 0;
  /// Its table, to query what it supports; its query needs no state.
  virtual const sucl_backend& table() const = 0;
  /// Whether it needs the backend that shares memory.
  virtual bool uses_memory_provider() const { return false; }
  /// Whether its communicators run plans of programs.
  virtual bool runs_custom_plans() const { return false; }

  /// Why it is not for this communicator, the same on every rank; empty: it may be.
  virtual std::string obstacle(backend_creation&) const { return {}; }
  /// Why it is for plans of programs only on this communicator, and for no collective; empty: it is
  /// for all that it supports. The same on every rank.
  virtual std::string obstacle_but_for_plans(backend_creation&) const { return {}; }
  /// Makes this rank's part. Collective, where obstacle() is empty; a part that is null on some
  /// rank is ended on the others. `*obstacle` says why it is null, if nothing is thrown.
  virtual backend_instance create(backend_creation&, std::string* obstacle) const = 0;

  /// Adds its candidates for one kind of operation at a position of the list.
  virtual void add_candidates(candidate_list&, sucl_kind, candidate_position) const {}
  /// Whether sends and receives of a communicator go by it, all or none.
  virtual bool supports_messages(const base::backend_entry&) const { return false; }
  /// Why it is better than the default backend.
  virtual std::string reason(const selection_scope&) const { return {}; }
};

}  // namespace sucl::core
