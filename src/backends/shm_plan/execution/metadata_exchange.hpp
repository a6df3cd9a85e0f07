// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What ranks exchange before some operations.
#pragma once

#include "backends/shm_plan/execution/copy_mode_tuner.hpp"
#include "backends/shm_plan/execution/execution.hpp"
#include "backends/shm_plan/plans/plan_cache.hpp"
#include "backends/shm_plan/shared/mapped_memories.hpp"
#include "backends/shm_plan/shared/node_progress.hpp"
#include "backends/shm_plan/shared/shared.hpp"

#include <cstdint>

namespace sucl::core {

/// Exchanges where the ranks' memory is, or how long their blocks are, and decides how an operation
/// goes on then: alike on every rank. One thread at a time.
class metadata_exchange {
 public:
  /// All arguments must outlive this object.
  metadata_exchange(shared_memory& memory, const node_progress& node, plan_cache& plans,
                    const mapped_memories& mapped, int rank, int size)
      : m_memory(memory),
        m_node(node),
        m_plans(plans),
        m_mapped(mapped),
        m_rank(rank),
        m_size(size) {}

  /// Whether it is worth to find out if all of an operation's memory is mapped. The same on every
  /// rank.
  bool may_be_mapped(const sucl_operation& o) const;
  /// Whether it is worth to read straight from the memory of peers. The same on every rank.
  bool may_be_read(const sucl_operation& o);
  /// The tuner that decides whether an operation is read; null: none does.
  copy_mode_tuner* tuner_if_open(const sucl_operation& o);

  /// Makes an operation begin with the exchange. `ahead`: the same one, if a part of it has been
  /// done; else null.
  void start(execution& e, const execution* ahead);
  /// The same, but where all know alike that the operation is staged, it is.
  void start_or_stage(execution& e, const execution* ahead);
  /// The metadata of all ranks has arrived: decides how the operation goes on.
  void decide(execution& e);

  /// Writes this rank's counts anew.
  void write_counts(execution& e);
  /// Whether nothing is left to do once the ranks have exchanged their counts.
  bool has_all_counts(execution& e);

 private:
  void write_memory(execution& e);
  void decide_access_mode(execution& e);
  bool any_in_place(const execution& e) const;
  bool is_read(execution& e);
  void take_addresses(execution& e) const;
  bool all_mapped(execution& e, const program& code) const;
  bool is_clipped_read(execution& e, std::uint64_t longest);
  bool take_counts(execution& e, bool decides);
  copy_mode_tuner& tuner_of(const sucl_operation& o);

  shared_memory& m_memory;
  const node_progress& m_node;
  plan_cache& m_plans;
  const mapped_memories& m_mapped;
  const int m_rank, m_size;
  copy_mode_tuners m_tuners;
  std::uint32_t m_last_tuner = 0;  ///< number of the one of blocks of their own lengths
};

}  // namespace sucl::core
