// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How far the ranks of a node are with the runs of plans.
#pragma once

#include "backends/shm_plan/plans/compiled.hpp"
#include "backends/shm_plan/shared/shared.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace sucl::core {

/// Runs of a rank that may be in progress at once.
inline constexpr std::uint32_t run_window = 3;

/// Counts the runs that this rank has finished and shows them to the others, and knows, mostly
/// without a poll, which ones these have finished: a run may begin when every rank of the node has
/// finished the one that had its scratch before. One thread at a time.
class node_progress {
 public:
  /// `memory` must stay. `neighbours`: the ranks of the node, this one among them.
  node_progress(const shared_memory& memory, int rank, int size, std::vector<int> neighbours)
      : m_memory(memory),
        m_rank(rank),
        m_neighbours(std::move(neighbours)),
        m_safe_run(memory.slots()),
        m_completed(static_cast<std::size_t>(size), 0) {}

  /// Number of the last run that is over on this rank, with all before it.
  std::uint64_t retired() const { return m_retired; }
  /// The next one is over.
  void retire() {
    ++m_retired;
    m_memory.finished(m_rank).store(m_retired, std::memory_order_release);
  }

  /// Whether every rank of the node has finished the run that had this one's scratch before. `own`:
  /// the compiled plan whose scratch it uses; null: it uses that of a slot.
  bool may_begin(std::uint64_t number, const compiled_code* own) {
    return (!own && number <= m_safe_run) || poll_peers(number, own);
  }
  /// A rank that is in a run has finished those that are out of its window.
  void note_peer_in_run(std::int32_t peer, std::uint64_t run) {
    auto& known = m_completed[static_cast<std::size_t>(peer)];
    if (run > run_window) known = std::max(known, run - run_window);
  }
  /// Whether all of them have finished what this rank has finished.
  bool all_have_followed() const;

  /// The number of ranks of the node.
  std::size_t ranks() const { return m_neighbours.size(); }

 private:
  bool poll_peers(std::uint64_t number, const compiled_code* own);

  const shared_memory& m_memory;
  const int m_rank;
  const std::vector<int> m_neighbours;
  std::uint64_t m_retired = 0;
  std::uint64_t m_safe_run;                ///< runs up to this number may begin
  std::vector<std::uint64_t> m_completed;  ///< by rank: it has finished the runs up to here
};

}  // namespace sucl::core
