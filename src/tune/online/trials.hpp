// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Two alternatives for one call, tried in turns at run time: which call takes which, what was
/// measured, and which one is chosen. Every rank makes the same calls in the same order, so every
/// rank is at the same point.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace sucl::tune {

/// Two alternatives, numbered 0 and 1.
template <class T>
using of_both = std::array<T, 2>;

/// Whether what takes `contender` is chosen: its time has to be less than that part of the other's.
/// A measurement is short, and what is within its error is no gain.
constexpr bool wins(double contender, double other, double part) {
  return contender < part * other;
}

/// The order of the trials: rounds, in each of which both alternatives have a turn, one after the
/// other.
struct trial_order {
  /// Calls of a turn that do not count, because caches are filled, and those that do.
  struct turn {
    std::uint64_t untimed = 0, timed = 1;
    std::uint64_t calls() const { return untimed + timed; }
  };
  of_both<turn> turns;
  std::uint64_t rounds = 1;
  std::uint64_t untimed_rounds = 0;  ///< before them
  /// A trial is one call; else all calls of a turn.
  bool by_call = false;

  std::uint64_t round_length() const { return turns[0].calls() + turns[1].calls(); }
  std::uint64_t calls() const { return (untimed_rounds + rounds) * round_length(); }
  std::uint64_t trials(bool second) const {
    return by_call ? rounds * turns[second].timed : rounds;
  }
};

/// The calls of one class: the first ones are trials.
template <class Time, std::size_t MaxTrials>
class online_trials {
 public:
  struct call {
    bool second = false;  ///< which alternative
    bool timed = false;
  };

  explicit online_trials(const trial_order& order) : m_order(order) {}

  /// Whether all turns are over.
  bool over() const { return m_started >= m_order.calls(); }
  /// The number of the next call.
  std::uint64_t started() const { return m_started; }
  /// The next call, while not all turns are over.
  call next() const { return call_of(m_started); }
  /// It starts now.
  void start() { ++m_started; }
  /// The call that has started last was none.
  void take_back() { --m_started; }

  /// Call `number` has taken this time. In any order. True: it was the last one of all.
  bool note(std::uint64_t number, Time time) {
    if (number >= m_order.calls()) return false;
    const call c = call_of(number);
    if (c.timed) {
      const std::uint64_t round = number / m_order.round_length() - m_order.untimed_rounds;
      const std::uint64_t trial = m_order.by_call ? m_timed[c.second] : round;
      m_times[c.second][trial] += time;
      ++m_timed[c.second];
    }
    return ++m_noted == m_order.calls();
  }
  /// The next call of an alternative that is timed and has not been noted has taken this time: for
  /// calls of one round that end in their order.
  void note_next(bool second, Time time) {
    if (is_known(second)) return;
    const std::uint64_t before = second ? m_order.turns[0].calls() : 0;
    note(before + m_order.turns[second].untimed + m_timed[second], time);
  }
  /// Whether all times of an alternative are there.
  bool is_known(bool second) const {
    return m_timed[second] == m_order.rounds * m_order.turns[second].timed;
  }
  /// The median over its trials: one that was interrupted, or lucky, does not decide.
  Time median(bool second) const {
    auto sorted = m_times[second];
    const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(m_order.trials(second));
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(m_order.trials(second) / 2);
    std::nth_element(sorted.begin(), middle, end);
    return *middle;
  }
  const trial_order& order() const { return m_order; }

  /// Forgets all times and begins once more.
  void again() { *this = online_trials(m_order); }

 private:
  call call_of(std::uint64_t number) const {
    const std::uint64_t round = number / m_order.round_length();
    const std::uint64_t at = number % m_order.round_length(), first = m_order.turns[0].calls();
    const bool second = at >= first;
    const bool warm = round >= m_order.untimed_rounds;
    return {second, warm && (second ? at - first : at) >= m_order.turns[second].untimed};
  }

  trial_order m_order;
  std::uint64_t m_started = 0;
  std::uint64_t m_noted = 0;
  of_both<std::uint64_t> m_timed{};  ///< of those that are timed, how many were noted
  of_both<std::array<Time, MaxTrials>> m_times{};
};

}  // namespace sucl::tune
