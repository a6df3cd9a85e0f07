// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How far the ranks of a node are with the runs of plans.
#pragma once

#include "backends/shm_plan/plans/compiled.hpp"
#include "backends/shm_plan/shared/shared.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace sucl::core {

/// Runs of a rank that may be in progress at once.
inline constexpr std::uint32_t run_window = 3;

/// Counts the runs that this rank has finished and shows them to the others, and knows, mostly
/// without a poll, which ones these have finished: a run may begin when every rank of the node has
/// finished the one that had its scratch before. One thread at a time.
///
/// With the number goes a part of the history of that run. Ranks that wait for each other compare
/// their histories by their flags; those that do not, such as two that both take themselves for the
/// root that sends, compare them here, before they are further apart than there are slots.
class node_progress {
 public:
  /// `memory` must outlive this object. `neighbours`: the ranks of the node, this one among them.
  /// `compares`: their histories too.
  node_progress(const shared_memory& memory, int rank, int size, std::vector<int> neighbours,
                bool compares)
      : m_memory(memory),
        m_rank(rank),
        m_neighbours(std::move(neighbours)),
        m_compares(compares),
        m_safe_run(memory.slots()),
        m_completed(static_cast<std::size_t>(size), 0),
        m_seen(static_cast<std::size_t>(size), 0) {}

  /// Number of the last run that is over on this rank, with all before it.
  std::uint64_t retired() const { return m_retired; }
  /// The same for any thread.
  std::uint64_t shown() const {
    return number_in(m_memory.finished(m_rank).load(std::memory_order_acquire));
  }
  /// The next run is over; `history` is that of the calls up to it.
  void retire(std::uint64_t history) {
    ++m_retired;
    m_histories[m_retired % m_histories.size()] = history;
    m_memory.finished(m_rank).store(packed(m_retired, history), std::memory_order_release);
  }

  /// Whether every rank of the node has finished the run that had this one's scratch before. `own`:
  /// the compiled plan whose scratch it uses; null: it uses that of a slot.
  bool may_begin(std::uint64_t number, const compiled_code* own) {
    return (!own && number <= m_safe_run) || poll_peers(number, own);
  }
  /// A run of which another rank has another history than this one.
  struct difference {
    std::uint64_t number, history;
  };
  /// The mismatch that may_begin() has found: then no run may begin.
  const std::optional<difference>& found() const { return m_found; }
  /// A rank that is in a run has finished those that are out of its window.
  void note_peer_in_run(std::int32_t peer, std::uint64_t run) {
    auto& known = m_completed[static_cast<std::size_t>(peer)];
    if (run > run_window) known = std::max(known, run - run_window);
  }
  /// Whether all ranks of the node have finished what this rank has finished.
  bool all_have_followed() const;

  /// The number of ranks of the node.
  std::size_t ranks() const { return m_neighbours.size(); }

 private:
  // What a rank shows: the last run that it has finished, below a part of its history.
  static constexpr int number_bits = 48;
  static constexpr std::uint64_t packed(std::uint64_t number, std::uint64_t history) {
    return history << number_bits | number;
  }
  static constexpr std::uint64_t number_in(std::uint64_t word) {
    return word & ((std::uint64_t{1} << number_bits) - 1);
  }
  bool poll_peers(std::uint64_t number, const compiled_code* own);
  void compare(std::uint64_t& seen);

  const shared_memory& m_memory;
  const int m_rank;
  const std::vector<int> m_neighbours;
  const bool m_compares;
  std::uint64_t m_retired = 0;
  std::uint64_t m_safe_run;                     ///< runs up to this number may begin
  std::vector<std::uint64_t> m_completed;       ///< by rank: it has finished the runs up to here
  std::vector<std::uint64_t> m_seen;            ///< by rank: what it showed, to be compared; or 0
  std::array<std::uint64_t, 64> m_histories{};  ///< of the last runs, by number
  std::optional<difference> m_found;
};

}  // namespace sucl::core
