// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// An operation that is run over and over, with everything worked out.
#pragma once

#include "backends/shm_plan/plans/program.hpp"
#include "backends/shm_plan/shared/shared.hpp"
#include "core/host_ops/fold.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace sucl::core {

class copy_mode_tuner;
class long_pieces;
class metadata_exchange;
class node_progress;
class nt_store_policy;
class plan_cache;
struct execution;

/// Memory that a prepared step works on. Scratch is at another address in each run.
struct bound_memory {
  std::byte* at = nullptr;       ///< in scratch: as if that began where the rank's part does
  std::uint64_t in_scratch = 0;  ///< all bits set: it is

  std::byte* in(std::uint64_t scratch_at) const { return at + (scratch_at & in_scratch); }
};

/// A step whose memory is known.
struct bound_step {
  step::action what = step::action::copy;
  bool nontemporal = false;  ///< a copy that is long enough for it to matter
  std::int32_t peer = -1;    ///< of a wait
  std::uint32_t sources = 0;
  std::uint64_t value = 0;  ///< of a signal or a wait, beside the run's number
  std::uint64_t size = 0;   ///< bytes of a copy, or that a signal takes along; elements of a fold
  bound_memory to;
  std::uint64_t* flag = nullptr;  ///< of a signal or a wait, in the first slot
  std::size_t first = 0;          ///< of prepared_run::sources
};

/// One slice on one channel, on the same memory each time. Holds while no tuning table is changed,
/// and no memory made known or forgotten.
struct prepared_run {
  /// Keeps the metadata of operations that only begin with exchanging their counts.
  std::shared_ptr<execution> what;
  fold_function fold = nullptr;
  copy_mode_tuner* tuner = nullptr;  ///< only while it is settled that this is not read
  shared_memory::need scratch;
  std::vector<bound_step> steps;
  std::vector<bound_memory> sources;
};

/// Prepares operations and runs them. One thread at a time.
class prepared_runs {
 public:
  /// All arguments must outlive this object. `spin_limit`: polls in vain before an ordinary run
  /// takes over.
  prepared_runs(shared_memory& memory, node_progress& node, plan_cache& plans,
                metadata_exchange& exchange, nt_store_policy& copier, long_pieces& pieces,
                const placement& where, int spin_limit)
      : m_memory(memory),
        m_node(node),
        m_plans(plans),
        m_exchange(exchange),
        m_copier(copier),
        m_long(pieces),
        m_where(where),
        m_rank(where.rank),
        m_size(where.size),
        m_spin_limit(spin_limit) {}

  /// Works out what running an operation over and over on the same memory needs; null where it
  /// cannot be known before.
  std::shared_ptr<prepared_run> prepare(const sucl_operation& o) const;
  /// Makes it the run of this number, the only one in flight. False if a peer is not near: then the
  /// same operation must be started next, and goes on where this has ended.
  bool run(const prepared_run& p, std::uint64_t number);

  /// The operation that has been begun this way; null: none.
  const execution* ahead() const { return m_ahead > 0 ? m_last->what.get() : nullptr; }
  /// The steps that have been taken of the next run, which goes on after them.
  std::uint32_t take_ahead() { return std::exchange(m_ahead, 0); }

 private:
  struct bound_run;
  void bind(execution& e, prepared_run& p) const;
  static void raise(const bound_run& r, const bound_step& s);
  bool take(const bound_run& r, const bound_step& s);

  shared_memory& m_memory;
  node_progress& m_node;
  plan_cache& m_plans;
  metadata_exchange& m_exchange;
  nt_store_policy& m_copier;
  long_pieces& m_long;
  const placement& m_where;
  const int m_rank, m_size, m_spin_limit;
  std::uint32_t m_ahead = 0;
  const prepared_run* m_last = nullptr;  ///< whose steps those are
};

}  // namespace sucl::core
