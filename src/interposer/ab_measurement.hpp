// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Whether MPI or SuCL executes calls of one class: both are timed, then the faster one is chosen.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace sucl::interposer {

enum class choice { mpi, sucl };

/// The choice that is taken with these times of SuCL and MPI: MPI's, unless SuCL's is shorter than
/// that part of it. a measurement is short: what is within its error is no gain.
choice faster(const std::array<double, 2>& seconds, double margin = 0.97);

/// The calls of one class on one communicator, of which some are timed. Every rank makes the same
/// calls in the same order, so every rank is at the same point of the measurement.
class ab_measurement {
 public:
  static constexpr int max_rounds = 15;

  /// SuCL and MPI take turns of `turn` calls each, for `rounds` rounds after one to warm up; the
  /// first call of a longer turn does not count. With `rounds` of 0 the answer is `untried`.
  ab_measurement(int rounds, int turn, choice untried);

  bool decided() const { return m_decided; }
  /// Whether all turns are over, and the answer is being awaited: meanwhile MPI goes.
  bool over() const { return m_started >= calls(); }
  /// The choice of the next call, which starts now.
  choice start();
  /// The call that has started last was none: the library has refused its arguments.
  void take_back() { --m_started; }
  /// What start() would say.
  choice next() const;
  /// The number of the next call.
  std::uint64_t started() const { return m_started; }

  /// A call that counts has taken this time. `number`: of that call. True if this was the last one.
  bool note(std::uint64_t number, double seconds);
  /// Times of a call of this rank, SuCL's and MPI's: medians over the rounds of each turn's mean. A
  /// root that runs ahead is over with single calls at once, and waits in others.
  std::array<double, 2> medians() const;
  /// The same on every rank: the choice, and the times of the slowest rank if there are any.
  void decide(choice w, const std::array<double, 2>& slowest);

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
  choice m_choice;
  double m_saving = 0;
  std::uint64_t m_started = 0;
  std::uint64_t m_noted = 0;
  std::array<std::vector<double>, 2> m_times;  ///< by round, of all calls that count
};

}  // namespace sucl::interposer
