// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which of two ways to go: both are tried, then the faster is taken.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace sucl::pmpi {

enum class way { mpi, sucl };

/// The way that is taken with these times of SuCL and MPI: MPI's, unless SuCL's is shorter than
/// that part of it. A trial is short: what is within its error is no gain.
way faster(const std::array<double, 2>& seconds, double margin = 0.97);

/// The calls of one class on one communicator, of which some are timed. Every rank makes the same
/// calls in the same order, so every rank is at the same point of the trial.
class trial {
 public:
  static constexpr int most_rounds = 15;

  /// SuCL and MPI take turns of `turn` calls each, for `rounds` rounds after one to warm up; the
  /// first call of a longer turn does not count. With `rounds` of 0 the answer is `untried`.
  trial(int rounds, int turn, way untried);

  bool decided() const { return m_decided; }
  /// Whether all turns are over, and the answer is being awaited: meanwhile MPI goes.
  bool over() const { return m_started >= calls(); }
  /// The way of the next call, which starts now.
  way start();
  /// The call that has started last was none: the library has refused its arguments.
  void take_back() { --m_started; }
  /// What start() would say.
  way next() const;
  /// The number of the next call.
  std::uint64_t started() const { return m_started; }

  /// A call that counts has taken this time. `number`: of that call. True if this was the last one.
  bool note(std::uint64_t number, double seconds);
  /// Times of a call of this rank, SuCL's and MPI's: medians over the rounds of each turn's mean. A
  /// root that runs ahead is over with single calls at once, and waits in others.
  std::array<double, 2> medians() const;
  /// The same on every rank: the way, and the times of the slowest rank if there are any.
  void decide(way w, const std::array<double, 2>& slowest);

  /// Forgets the answer and begins once more.
  void again();

  /// Seconds that each call takes less than MPI's, as far as is known.
  double saving() const { return m_saving; }

 private:
  std::uint64_t calls() const {
    return 2 * static_cast<std::uint64_t>(m_rounds + 1) * static_cast<std::uint64_t>(m_turn);
  }
  std::uint64_t round_length() const { return 2 * static_cast<std::uint64_t>(m_turn); }

  int m_rounds;
  int m_turn;
  bool m_decided;
  way m_way;
  double m_saving = 0;
  std::uint64_t m_started = 0;
  std::uint64_t m_noted = 0;
  std::array<std::vector<double>, 2> m_times;  ///< by round, of all calls that count
};

}  // namespace sucl::pmpi
