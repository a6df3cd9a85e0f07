// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Whether operations of a kind and size are faster staged or read: measured while the program
/// runs.
#pragma once

#include "tune/online/trials.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <limits>

namespace sucl::core {

/// How long the two copy modes take on a rank, in nanoseconds; none: not measured often enough.
struct timings {
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t staged, read;

  /// The longer of the times of two ranks, for each copy mode.
  static timings slower(const timings& a, const timings& b) {
    return {std::max(a.staged, b.staged), std::max(a.read, b.read)};
  }
};

/// What is known of the operations of one kind and size. From time to time some are executed in
/// either copy mode and timed; the others use the faster one. All ranks count the same operations,
/// exchange their times before each, and so decide alike.
class copy_mode_tuner {
 public:
  static constexpr std::uint64_t trials = 5;  ///< of each copy mode: the median counts
  static constexpr std::uint64_t cold = 3;    ///< before them: memory is touched, caches are filled
  static constexpr std::uint64_t period = 2048;
  /// Of long operations, which programs call less often, fewer are tried.
  static constexpr std::uint64_t long_trials = 3, long_cold = 1;

  copy_mode_tuner() : copy_mode_tuner(false, 0) {}
  /// `round`: staged operations until scratch is where it was before (shared_memory), which have to
  /// come before those that are timed.
  copy_mode_tuner(bool is_long, std::uint64_t round) : m_trials(order_of(is_long, round)) {}

  /// The ranks have exchanged `slowest`, the longer time of each copy mode.
  void agree(const timings& slowest) { m_agreed = slowest; }
  /// The copy mode of the next operation. True: it is read.
  bool next() {
    if (m_trials.started() == period) m_trials.again();
    const bool trial = !m_trials.over();
    const auto now = trial ? m_trials.next() : decltype(m_trials)::call{};
    m_trials.start();
    m_tries = now.timed;
    if (trial) return now.second;
    if (all_agreed()) m_reads = tune::wins(m_agreed.read, m_agreed.staged, 0.875);
    return m_reads;
  }
  bool next(const timings& slowest) {
    agree(slowest);
    return next();
  }
  /// Whether the next operation is staged whatever the ranks would measure, and is not timed:
  /// during one full pass over the scratch ring buffer, and once staging has been chosen.
  bool converged() const {
    const tune::trial_order& order = m_trials.order();
    const std::uint64_t call = m_trials.started() == period ? 0 : m_trials.started();
    return call < order.turns[0].untimed || (call > order.calls() && !m_reads && all_agreed());
  }
  /// Whether that operation is to be timed.
  bool tries() const { return m_tries; }
  /// Reports how long that operation took.
  void note(bool read, std::chrono::nanoseconds took) {
    const auto ns =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(took.count()), timings::none - 1);
    m_trials.note_next(read, static_cast<std::uint32_t>(ns));
  }
  timings mine() const { return {median(false), median(true)}; }
  /// The copy mode of operations that are not timed.
  bool reads() const { return m_reads; }

 private:
  static tune::trial_order order_of(bool is_long, std::uint64_t round) {
    const std::uint64_t timed = is_long ? long_trials : trials;
    const std::uint64_t untimed = is_long ? long_cold : cold;
    return {{{{std::max(untimed, round), timed}, {untimed, timed}}}, 1, 0, true};
  }
  std::uint32_t median(bool read) const {
    return m_trials.is_known(read) ? m_trials.median(read) : timings::none;
  }
  bool all_agreed() const {
    return m_agreed.staged != timings::none && m_agreed.read != timings::none;
  }

  tune::online_trials<std::uint32_t, trials> m_trials;
  timings m_agreed{timings::none, timings::none};
  bool m_tries = false, m_reads = false;
};

/// A tuner and a rank's timings in one word, where the ranks do not know beforehand which one comes
/// next: then they exchange their times of the last one.
struct packed_timings {
  std::uint32_t number = 0;  ///< of the tuner; 0: none
  timings times{timings::none, timings::none};

  std::uint64_t packed() const {
    return std::uint64_t{number} << 54 | std::uint64_t{coarse(times.staged)} << 27 |
           coarse(times.read);
  }
  static packed_timings of(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> 54), {fine(word >> 27), fine(word)}};
  }

 private:
  // A time has 27 bits, in units of 16 ns; the largest value stands for none.
  static constexpr std::uint32_t grain = 16, most = (1u << 27) - 1;
  static std::uint32_t coarse(std::uint32_t ns) {
    return ns == timings::none ? most : std::min(ns / grain, most - 1);
  }
  static std::uint32_t fine(std::uint64_t bits) {
    const auto steps = static_cast<std::uint32_t>(bits) & most;
    return steps == most ? timings::none : steps * grain;
  }
};

/// The tuners of all kinds and sizes, one for each power of two.
class copy_mode_tuners {
 public:
  copy_mode_tuners() {
    for (auto& of_kind : m_all)
      for (std::size_t size = 0; size < sizes; ++size)
        of_kind[size] = copy_mode_tuner(size >= long_from, round_of(std::uint64_t{1} << size >> 1));
  }
  /// Staged operations of so many bytes until scratch is where it was before.
  static std::uint64_t round_of(std::uint64_t bytes) {
    constexpr std::uint64_t scratch = 4 << 20, most = 128;
    return std::min(scratch >> std::bit_width(bytes), most);
  }
  copy_mode_tuner& of(std::int32_t kind, std::uint64_t bytes) { return at(number_of(kind, bytes)); }

  /// Each tuner has a number, from 1 on.
  static std::uint32_t number_of(std::int32_t kind, std::uint64_t bytes) {
    const auto size = std::min(static_cast<std::size_t>(std::bit_width(bytes)), sizes - 1);
    return static_cast<std::uint32_t>(static_cast<std::size_t>(kind) % kinds * sizes + size) + 1;
  }
  static bool is_number(std::uint32_t n) { return n >= 1 && n <= kinds * sizes; }
  copy_mode_tuner& at(std::uint32_t n) { return m_all[(n - 1) / sizes][(n - 1) % sizes]; }

 private:
  static constexpr std::size_t kinds = 16, sizes = 32, long_from = 19;  // 256 KiB
  std::array<std::array<copy_mode_tuner, sizes>, kinds> m_all{};
};

}  // namespace sucl::core
