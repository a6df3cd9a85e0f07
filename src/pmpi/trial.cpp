// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "trial.hpp"

#include <algorithm>

namespace sucl::pmpi {

trial::trial(int rounds, way untried)
    : m_rounds(std::min(rounds, most_rounds - 1)), m_decided(rounds <= 0), m_way(untried) {}

bool trial::note(double seconds) {
  m_times[static_cast<std::size_t>(m_calls % 2)][static_cast<std::size_t>(m_calls / 2)] = seconds;
  return ++m_calls == 2 * (m_rounds + 1);
}

std::array<double, 2> trial::medians() const {
  std::array<double, 2> result{};
  for (std::size_t w = 0; w < 2; ++w) {
    auto times = m_times[w];
    const auto begin = times.begin() + 1;
    const auto middle = begin + m_rounds / 2;
    std::nth_element(begin, middle, begin + m_rounds);
    result[w] = *middle;
  }
  return result;
}

void trial::decide(const std::array<double, 2>& slowest) {
  m_decided = true;
  m_way = slowest[0] <= slowest[1] ? way::sucl : way::mpi;
  if (m_way == way::sucl) m_saving = slowest[1] - slowest[0];
}

}  // namespace sucl::pmpi
