// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The executor: runs the plans of one communicator, in order and several at once.
#pragma once

#include "backends/shm_plan/execution/copy_mode_tuner.hpp"
#include "backends/shm_plan/execution/mapped_memories.hpp"
#include "backends/shm_plan/execution/node_progress.hpp"
#include "backends/shm_plan/execution/plan_messages.hpp"
#include "backends/shm_plan/execution/prepared_run.hpp"
#include "backends/shm_plan/execution/shared.hpp"
#include "backends/shm_plan/plans/compiled.hpp"
#include "backends/shm_plan/plans/plan_cache.hpp"
#include "core/host_ops/fold.hpp"
#include "core/host_ops/nt_copy.hpp"

#include <sucl/error.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace sucl::core {

/// An operation in the executor.
struct execution {
  sucl_operation what{};
  call_signature signature;
  const plan_instance* how = nullptr;
  compiled_code* own = nullptr;  ///< of a compiled plan
  fold_function fold = nullptr;
  std::uint64_t element_size = 1;  ///< that folds count in
  std::byte* send = nullptr;       ///< where the input begins, in place too
  std::byte* recv = nullptr;
  std::uint64_t started = 0;   ///< slices
  std::uint64_t finished = 0;  ///< slices
  /// The ranks exchange first what only some know, and then decide how to go on.
  enum class notice : std::uint8_t { none, memory, counts } exchanging = notice::none;
  std::vector<std::uint64_t> own_metadata, all_metadata;  ///< of this rank, and of all
  std::vector<std::byte*> peer_send;                      ///< by rank, where memory is mapped
  std::vector<std::byte*> peer_recv;
  /// Of blocks whose lengths differ; in elements.
  const std::uint64_t *send_counts = nullptr, *send_displs = nullptr;
  bool reading = false;              ///< peers' memory is copied from, not mapped
  copy_mode_tuner* timed = nullptr;  ///< that wants to know how long it takes from now on
  std::chrono::steady_clock::time_point since;
  std::uint64_t first_run = 0;  ///< of those that read
  std::optional<error_info> failure;
  bool done() const { return exchanging == notice::none && finished == how->slices; }
};

/// Runs operations of one communicator. One thread at a time.
///
/// An operation is one run of a program for each of its slices. Runs are numbered alike on every
/// rank. Up to `run_window` of them are in progress: while one waits for a peer or for a message,
/// the next one goes on. A run may begin when every rank of the node has finished the one that had
/// its slot before, which a rank mostly knows already from what it has waited for since.
class executor {
 public:
  executor(const backend_comm& memory, placement where, const sharing& how,
           std::vector<tuning_row> tuning = default_tuning());
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  const shared_memory& memory() const { return m_memory; }
  const placement& where() const { return m_where; }
  plan_cache& plans() { return m_plans; }

  /// Queues an operation. Throws where its plan cannot be made.
  execution* start(const sucl_operation& o);
  /// Does what can be done without waiting, looking `spins` times at what is not there yet. Throws
  /// what a transport reports: then nothing goes on any more.
  void progress(int spins);
  /// Runs until the request is done, but gives up waiting when it takes long: then other work
  /// of the process has to go on.
  void finish(execution* r);
  /// Works out what running an operation over and over on the same memory needs; null where it
  /// cannot be known before.
  std::shared_ptr<prepared_run> prepare(const sucl_operation& o);
  /// Runs it, if nothing else is under way and peers are near. Otherwise the same operation must be
  /// started next: it goes on where this has ended.
  bool run_at_once(const prepared_run& p);
  /// Memory that the operations may be on.
  mapped_memories& mapped() { return m_mapped; }
  /// What the ranks of the node have called.
  const call_board& board() const { return m_memory.board(); }
  /// Whether all of them have finished what this rank has begun.
  bool all_have_followed() const { return m_node.all_have_followed(); }

  /// Takes a compiled plan over. Its number is that of the operations that start it.
  void add(std::uint64_t number, std::unique_ptr<compiled_code> code);
  /// Forgets it. Nothing runs it.
  void remove_compiled(std::uint64_t number);

  /// Gives the request back.
  void recycle(execution* r) { m_free.push_back(r); }
  /// Gives up what is on its way through transports. Afterwards there is only destruction.
  void abort();

 private:
  struct run {
    execution* owner = nullptr;
    const program* code = nullptr;
    std::uint64_t number = 0;
    std::uint64_t history = 0;  ///< of the calls up to this one
    std::uint64_t flag = 0;     ///< run_flag::of() both
    std::uint64_t shift = 0;    ///< bytes from the begin of a block to the slice
    std::uint32_t slot = 0;
    std::byte* const* scratch = nullptr;  ///< by rank; it begins `scratch_at` bytes from there
    std::uint64_t scratch_at = 0;
    std::uint32_t ended = 0;  ///< channels
    std::array<std::uint32_t, max_channels> at{};
    std::array<posted_messages, max_channels> posted;
  };

  execution* take_request();
  sucl_operation simplest(const sucl_operation& o) const;
  void set_memory(execution& e);
  void start_compiled(execution& e);
  void exchange_or_stage(execution& e);
  void start_exchange(execution& e);
  void go_on(int spins);
  bool begin_next();
  void next_in_queue();
  bool may_be_mapped(const sucl_operation& o) const;
  bool may_be_read(const sucl_operation& o);
  void write_memory(execution& e);
  void write_counts(execution& e);
  bool take_counts(execution& e, bool decides);
  bool is_clipped_read(execution& e, std::uint64_t longest);
  void decide(execution& e);
  void decide_access_mode(execution& e);
  bool any_in_place(const execution& e) const;
  copy_mode_tuner& tuner_of(const sucl_operation& o);
  copy_mode_tuner* tuner_if_open(const sucl_operation& o);
  bool is_read(execution& e);
  void take_addresses(execution& e) const;
  void read(const run& r, std::int32_t rank, std::byte* to, const std::byte* from,
            std::uint64_t bytes) const;
  void note_unreadable(execution& e) const;
  bool all_mapped(execution& e, const program& code) const;
  void bind(execution& e, prepared_run& p) const;
  bool has_all_counts(execution& e);
  struct bound_run;
  static void raise(const bound_run& r, const bound_step& s);
  bool take(const bound_run& r, const bound_step& s);
  bool advance(run& r, int spins);
  bool advance_channel(run& r, std::uint32_t channel, int spins);
  bool wait(run& r, const step& s, int spins);
  void post(run& r, std::uint32_t channel, const step& s);
  std::byte* address(const run& r, const operand& o) const;
  std::uint64_t length(const run& r, const operand& o) const;
  static bool keeps_block(const execution& e, const step& s);
  bool is_own_output(const step& s) const {
    return s.to.where == plan::space::recv && s.to.rank == m_rank;
  }
  void copy(const run& r, const step& s);
  void fold(const run& r, const step& s) const;
  void retire();
  void renew_flags(std::uint64_t number, std::uint64_t value);
  [[noreturn]] void accuse(std::uint64_t number, std::uint64_t history);
  void check_alarm();
  void examine_peers();
  const placement m_where;
  const int m_rank, m_size;
  const plan_messages m_messages;  ///< ended after all else, also if the making fails
  backend_comm m_memory_provider;
  shared_memory m_memory;
  node_progress m_node;
  plan_cache m_plans;
  nt_store_policy m_copier;
  copy_mode_tuners m_tuners;
  std::uint32_t m_last_tuner = 0;  ///< number of the one of blocks of their own lengths
  mapped_memories m_mapped;
  std::vector<std::pair<std::uint64_t, std::unique_ptr<compiled_code>>> m_compiled;
  int m_spin_limit;  ///< polls of a flag before the processor is given away

  std::vector<std::unique_ptr<execution>> m_requests;
  std::vector<execution*> m_free;
  std::vector<execution*> m_queue;  ///< in order, from m_head on
  std::size_t m_head = 0;

  std::array<run, run_window> m_runs{};
  std::uint64_t m_begun = 0;                 ///< number of the last run that has begun
  std::uint32_t m_ahead = 0;                 ///< steps that run_at_once() has taken of the next run
  const prepared_run* m_prepared = nullptr;  ///< whose they are
  std::uint64_t m_steps = 0;                 ///< taken so far: whether something moves
  unsigned m_idle_polls = 0;                 ///< calls of progress() in which nothing did
  std::uint64_t m_idle_at = ~std::uint64_t{0};  ///< steps taken, where none has been taken for long
  std::chrono::steady_clock::time_point m_idle_since;
  std::optional<error_info> m_broken;  ///< why nothing goes on
};

}  // namespace sucl::core
