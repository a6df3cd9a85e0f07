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
  std::uint64_t safe = ~std::uint64_t{0};
  for (const int r : m_neighbours) {
    auto& known = m_completed[static_cast<std::size_t>(r)];
    auto& seen = m_seen[static_cast<std::size_t>(r)];
    if (r == m_rank) {
      known = m_retired;
    } else if (known < before) {
      seen = m_memory.finished(r).load(std::memory_order_acquire);
      known = std::max(known, number_in(seen));
    }
    compare(seen);
    if (m_found || known < before) return false;
    safe = std::min(safe, known + m_memory.slots());
    if (seen != 0) safe = std::min(safe, number_in(seen));  // then it can be compared
  }
  m_safe_run = safe;
  return true;
}

// What a rank has shown, unless it is ahead: that is compared when this one has come as far.
void node_progress::compare(std::uint64_t& seen) {
  const std::uint64_t number = number_in(seen);
  if (!m_compares) seen = 0;
  if (seen == 0 || number > m_retired) return;
  const std::uint64_t history = m_histories[number % m_histories.size()];
  if (m_retired - number < m_histories.size() && packed(number, history) != seen)
    m_found = {number, history};
  seen = 0;
}

bool node_progress::all_have_followed() const {
  return std::all_of(m_neighbours.begin(), m_neighbours.end(), [&](int r) {
    return number_in(m_memory.finished(r).load(std::memory_order_acquire)) >= m_retired;
  });
}

}  // namespace sucl::core
