// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The executor: runs the plans of one communicator, in order and several at once.
#pragma once

#include "backends/shm_plan/execution/execution.hpp"
#include "backends/shm_plan/execution/long_pieces.hpp"
#include "backends/shm_plan/execution/metadata_exchange.hpp"
#include "backends/shm_plan/execution/plan_messages.hpp"
#include "backends/shm_plan/execution/prepared_run.hpp"
#include "backends/shm_plan/plans/compiled.hpp"
#include "backends/shm_plan/plans/plan_cache.hpp"
#include "backends/shm_plan/shared/mapped_memories.hpp"
#include "backends/shm_plan/shared/node_progress.hpp"
#include "backends/shm_plan/shared/shared.hpp"
#include "core/host_ops/nt_copy.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace sucl::core {

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
  std::shared_ptr<prepared_run> prepare(const sucl_operation& o) const {
    return m_prepared.prepare(o);
  }
  /// Runs it, if nothing else is in flight and peers are near. Otherwise the same operation must be
  /// started next: it goes on where this has ended.
  bool run_at_once(const prepared_run& p) {
    const std::uint64_t number = m_begun + 1;
    if (m_broken || m_begun != m_node.retired() || m_head != m_queue.size() ||
        !m_node.may_begin(number, nullptr) || !m_prepared.run(p, number))
      return false;
    m_begun = number;
    m_node.retire(m_memory.board().history());
    return true;
  }
  /// Memory that the operations may be on.
  mapped_memories& mapped() { return m_mapped; }
  /// What the ranks of the node have called.
  const call_board& board() const { return m_memory.board(); }
  /// Whether the next run to end is the first one in which ranks differ, or a later one. Any
  /// thread.
  bool meets_alarm() const { return board().ends(m_node.shown() + 1); }
  /// Runs that are over on this rank. Any thread.
  std::uint64_t calls_over() const { return m_node.shown(); }
  /// Whether all ranks of the node have finished what this rank has begun.
  bool all_have_followed() const { return m_node.all_have_followed(); }

  /// Takes a compiled plan over. Its number is that of the operations that start it.
  void add(std::uint64_t number, std::unique_ptr<compiled_code> code);
  /// Forgets a compiled plan that nothing runs.
  void remove_compiled(std::uint64_t number);

  /// Frees the request.
  void recycle(execution* r) { m_free.push_back(r); }
  /// Gives up what is on its way through transports. Afterwards there is only destruction.
  void abort();

 private:
  execution* take_request();
  void start_compiled(execution& e);
  void go_on(int spins);
  bool begin_next();
  void next_in_queue();
  bool advance(plan_run& r, int spins);
  bool advance_channel(plan_run& r, std::uint32_t channel, int spins);
  bool wait(plan_run& r, const step& s, int spins);
  void post(plan_run& r, std::uint32_t channel, const step& s);
  bool is_own_output(const step& s) const {
    return s.to.where == plan::space::recv && s.to.rank == m_rank;
  }
  void copy(const plan_run& r, const step& s);
  void fold(const plan_run& r, const step& s);
  void read(const plan_run& r, std::int32_t rank, std::byte* to, const std::byte* from,
            std::uint64_t bytes) const;
  void note_unreadable(execution& e) const;
  void retire();
  void report_mismatch(std::uint64_t number, std::uint64_t history);
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
  long_pieces m_long;
  mapped_memories m_mapped;
  std::vector<std::pair<std::uint64_t, std::unique_ptr<compiled_code>>> m_compiled;
  const int m_spin_limit;  ///< polls of a flag before the processor is given away
  metadata_exchange m_exchange;
  prepared_runs m_prepared;

  std::vector<std::unique_ptr<execution>> m_requests;
  std::vector<execution*> m_free;
  std::vector<execution*> m_queue;  ///< in order, from m_head on
  std::size_t m_head = 0;

  std::array<plan_run, run_window> m_runs{};
  std::uint64_t m_begun = 0;           ///< number of the last run that has begun
  std::uint64_t m_steps = 0;           ///< taken so far: whether something moves
  unsigned m_idle_polls = 0;           ///< calls of progress() in which nothing did
  std::optional<error_info> m_broken;  ///< why nothing goes on
};

}  // namespace sucl::core
