// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/decision/persistent_agreement.hpp"

namespace sucl::interposer {

void persistent_calls::add(bool fit) {
  const std::uint64_t n = m_made.load(std::memory_order_relaxed);
  const std::uint64_t bit = std::uint64_t{1} << (n % kept);
  const std::uint64_t before = m_fit.load(std::memory_order_relaxed);
  m_fit.store(fit ? before | bit : before & ~bit, std::memory_order_release);
  m_made.store(n + 1, std::memory_order_release);
}

// Whether every rank has made that many, or no longer takes part.
bool persistent_agreement::wait_for(std::uint64_t made,
                                    const std::function<void()>& waiting) const {
  for (int r = 0; r < m_ranks; ++r)
    while (m_calls[r].made() < made) {
      // What it has made before it ended comes first.
      if (m_calls[r].ended()) {
        if (m_calls[r].made() >= made) break;
        return false;
      }
      waiting();
    }
  return true;
}

bool persistent_agreement::meet(bool fit, const std::function<void()>& waiting) {
  if (!m_calls || m_calls[m_rank].ended()) return false;
  const std::uint64_t n = m_calls[m_rank].made();
  // A rank has read what this one overwrites once it has made another request.
  if (n >= persistent_calls::kept && !wait_for(n + 2 - persistent_calls::kept, waiting)) {
    refuse();
    return false;
  }
  m_calls[m_rank].add(fit);
  if (!fit) return false;
  if (!wait_for(n + 1, waiting)) {
    refuse();
    return false;
  }
  bool all = true;
  for (int r = 0; r < m_ranks; ++r) all = m_calls[r].was_fit(n) && all;
  return all;
}

}  // namespace sucl::interposer
