// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_plan/shared/node_progress.hpp"

namespace sucl::core {

// Reads how far the ranks are that this one has not waited for lately. Then `m_safe_run` is
// current.
bool node_progress::poll_peers(std::uint64_t number, const compiled_code* own) {
  std::uint64_t before = number > m_memory.slots() ? number - m_memory.slots() : 0;
  if (own) before = std::max(before, own->last_run[own->starts % compiled_code::copies]);
  if (before + m_memory.slots() <= m_safe_run) return true;
  std::uint64_t least = ~std::uint64_t{0};
  for (const int r : m_neighbours) {
    auto& known = m_completed[static_cast<std::size_t>(r)];
    if (r == m_rank) {
      known = m_retired;
    } else if (known < before) {
      known = std::max(known, m_memory.finished(r).load(std::memory_order_acquire));
    }
    if (known < before) return false;
    least = std::min(least, known);
  }
  m_safe_run = least + m_memory.slots();
  return true;
}

bool node_progress::all_have_followed() const {
  return std::all_of(m_neighbours.begin(), m_neighbours.end(), [&](int r) {
    return m_memory.finished(r).load(std::memory_order_acquire) >= m_retired;
  });
}

}  // namespace sucl::core
