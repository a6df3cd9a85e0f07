// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Whether MPI or SuCL executes calls of one class: both are timed, then the faster one is chosen.
#pragma once

#include "tune/online/trials.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace sucl::interposer {

enum class choice { mpi, sucl };

/// Of two alternatives SuCL's is the first one, and has to win.
constexpr choice choice_of(bool sucl_wins) { return sucl_wins ? choice::sucl : choice::mpi; }

/// The choice that is taken with these times of SuCL and MPI.
constexpr choice faster(const std::array<double, 2>& seconds, double margin) {
  return choice_of(tune::wins(seconds[0], seconds[1], margin));
}

/// The calls of one class on one communicator, of which some are timed.
class ab_measurement {
 public:
  static constexpr int max_rounds = 15;

  /// SuCL and MPI take turns of `turn` calls each, for `rounds` rounds after one to warm up; the
  /// first call of a longer turn does not count. With `rounds` of 0 the answer is `untried`.
  ab_measurement(int rounds, int turn, choice untried)
      : m_trials(order_of(std::clamp(rounds, 0, max_rounds), turn)),
        m_decided(rounds <= 0),
        m_choice(untried) {}

  bool decided() const { return m_decided; }
  /// Whether all turns are over, and the answer is being awaited: meanwhile MPI goes.
  bool over() const { return m_trials.over(); }
  /// The choice of the next call, which starts now.
  choice start() {
    const choice w = next();
    m_trials.start();
    return w;
  }
  /// The call that has started last was none: the library has refused its arguments.
  void take_back() { m_trials.take_back(); }
  /// What start() would say.
  choice next() const {
    if (m_decided) return m_choice;
    return choice_of(!over() && !m_trials.next().second);
  }
  /// The number of the next call.
  std::uint64_t started() const { return m_trials.started(); }

  /// A call that counts has taken this time. `number`: of that call. True if this was the last one.
  bool note(std::uint64_t number, double seconds) {
    return !m_decided && m_trials.note(number, seconds);
  }
  /// Times of a call of this rank, SuCL's and MPI's: medians over the rounds of each turn's mean. A
  /// root that runs ahead is over with single calls at once, and waits in others.
  std::array<double, 2> medians() const {
    const auto calls = static_cast<double>(m_trials.order().turns[0].timed);
    return {m_trials.median(false) / calls, m_trials.median(true) / calls};
  }
  /// The same on every rank: the choice, and the times of the slowest rank if there are any.
  void decide(choice w, const std::array<double, 2>& slowest) {
    m_decided = true;
    m_choice = w;
    if (w == choice::sucl) m_saving = std::max(0.0, slowest[1] - slowest[0]);
  }

  /// Forgets the answer and begins once more.
  void again() {
    m_trials.again();
    m_decided = m_trials.order().rounds == 0;
    m_saving = 0;
  }

  /// Seconds that each call takes less than MPI's, as far as is known.
  double saving() const { return m_saving; }

 private:
  static tune::trial_order order_of(int rounds, int turn) {
    const auto calls = static_cast<std::uint64_t>(turn);
    const tune::trial_order::turn one{turn == 1 ? 0u : 1u, std::max<std::uint64_t>(1, calls - 1)};
    return {{one, one}, static_cast<std::uint64_t>(rounds), 1};
  }

  tune::online_trials<double, max_rounds> m_trials;
  bool m_decided;
  choice m_choice;
  double m_saving = 0;
};

}  // namespace sucl::interposer
