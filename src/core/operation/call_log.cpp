// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/operation/call_log.hpp"

#include <algorithm>

namespace sucl::core {

void call_log::note(const call_signature& call) {
  const std::uint64_t last = m_last.load(std::memory_order_relaxed);
  m_history = mix(m_history, call.hash);
  if (last < remembered)
    m_entries.push_back({m_history, call});
  else
    m_entries[last % remembered] = {m_history, call};
  m_last.store(last + 1, std::memory_order_release);
}

const call_log::entry* call_log::find(std::uint64_t number) const {
  const std::uint64_t last = m_last.load(std::memory_order_relaxed);
  if (number == 0 || number > last || last - number >= remembered) return nullptr;
  return &m_entries[(number - 1) % remembered];
}

call_excerpt call_log::excerpt(std::uint64_t from, std::uint64_t stride,
                               std::uint64_t count) const {
  call_excerpt e;
  e.from = from;
  e.stride = stride;
  for (const std::uint64_t most = std::min(count, e.most); e.count < most; ++e.count) {
    const entry* known = find(from + e.count * stride);
    if (!known) break;
    if (e.count == 0) e.call = known->call;
    e.histories[e.count] = known->history;
  }
  return e;
}

}  // namespace sucl::core
