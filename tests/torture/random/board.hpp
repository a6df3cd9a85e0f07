// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A board of all ranks of a machine, in a file that all of them map: they compare what they got
/// without the library that is on trial.
#pragma once

#include <sucl/sucl.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace sucl::torture {

class board {
 public:
  static constexpr int max_ranks = 16;
  static constexpr std::size_t slots = 4096;

  /// Collective. The file has no name any more when all ranks have it.
  board(communicator comm, int rank, int ranks);
  ~board();
  board(const board&) = delete;
  board& operator=(const board&) = delete;

  /// A result that all ranks of a communicator get: `group` names it, and is 0 where there is none.
  void note(std::uint64_t group, std::uint64_t hash, std::uint64_t step);
  bool is_nearly_full() const { return m_noted + 64 > slots; }

  /// Of what has been noted since the last time: the steps whose results differ between ranks.
  /// Collective; ends the process where another rank does not come.
  std::vector<std::uint64_t> compare();

  /// Counters of all ranks: what each adds, and the sum.
  void add(int counter, std::uint64_t by) { row().counters[counter] += by; }
  std::uint64_t sum(int counter) const;

  /// Where this rank is, for messages about one that does not come.
  void at(std::uint64_t step) { row().step.store(step, std::memory_order_relaxed); }

  /// Waits for all ranks; ends the process where one does not come within `seconds`.
  void barrier(int seconds = 300);

 private:
  struct note_line {
    std::uint64_t group, hash, step;
  };
  struct line {
    std::atomic<std::uint64_t> arrivals{0};
    std::atomic<std::uint64_t> step{0};
    std::array<std::uint64_t, 8> counters{};
    std::array<note_line, slots> notes;
  };
  line& row() const { return m_lines[m_rank]; }
  int m_rank, m_ranks;
  line* m_lines = nullptr;
  std::size_t m_noted = 0;
};

}  // namespace sucl::torture
