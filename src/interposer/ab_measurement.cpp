// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/ab_measurement.hpp"

#include <algorithm>

namespace sucl::interposer {

choice faster(const std::array<double, 2>& seconds, double margin) {
  return seconds[0] < margin * seconds[1] ? choice::sucl : choice::mpi;
}

ab_measurement::ab_measurement(int rounds, int turn, choice untried)
    : m_rounds(std::clamp(rounds, 0, max_rounds)),
      m_turn(turn),
      m_decided(rounds <= 0),
      m_choice(untried) {
  m_times.fill(std::vector<double>(static_cast<std::size_t>(m_rounds), 0.0));
}

choice ab_measurement::next() const {
  if (m_decided) return m_choice;
  if (over()) return choice::mpi;
  const bool first_half = m_started % round_length() < static_cast<std::uint64_t>(m_turn);
  return first_half ? choice::sucl : choice::mpi;
}

choice ab_measurement::start() {
  const choice w = next();
  ++m_started;
  return w;
}

bool ab_measurement::note(std::uint64_t number, double seconds) {
  const std::uint64_t turn = static_cast<std::uint64_t>(m_turn), at = number % round_length();
  if (m_decided || number >= calls()) return false;
  const bool counts = number >= round_length() && (turn == 1 || at % turn != 0);
  if (counts) m_times[at / turn][number / round_length() - 1] += seconds;
  return ++m_noted == calls();
}

std::array<double, 2> ab_measurement::medians() const {
  std::array<double, 2> result{};
  for (std::size_t w = 0; w < 2; ++w) {
    auto times = m_times[w];
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    result[w] = *middle / std::max(1, m_turn - 1);
  }
  return result;
}

void ab_measurement::again() { *this = ab_measurement(m_rounds, m_turn, m_choice); }

void ab_measurement::decide(choice w, const std::array<double, 2>& slowest) {
  m_decided = true;
  m_choice = w;
  if (w == choice::sucl) m_saving = std::max(0.0, slowest[1] - slowest[0]);
  m_times = {};
}

}  // namespace sucl::interposer
