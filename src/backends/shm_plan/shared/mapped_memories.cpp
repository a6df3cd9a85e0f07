// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_plan/shared/mapped_memories.hpp"

#include <algorithm>

namespace sucl::core {

mapped_memories::~mapped_memories() {
  for (mapped_memory& m : m_all) m_provider.table->memory_destroy(m_provider.comm, &m.region);
}

void mapped_memories::add(const mapped_memory& m, std::uint64_t sequence) {
  if (m_all.empty()) m_times.push_back({sequence, ~std::uint64_t{0}});
  m_all.push_back(m);
}

bool mapped_memories::remove(const void* base, std::uint64_t sequence, mapped_memory& m) {
  const auto found = std::find_if(m_all.begin(), m_all.end(),
                                  [&](const auto& known) { return known.region.base == base; });
  if (found == m_all.end()) return false;
  m = *found;
  m_all.erase(found);
  if (m_all.empty()) m_times.back().until = sequence;
  return true;
}

// An operation that was issued long ago may be posted late.
bool mapped_memories::any_for(std::uint64_t sequence) const {
  const auto then = std::find_if(m_times.rbegin(), m_times.rend(),
                                 [&](const period& t) { return sequence > t.since; });
  return then != m_times.rend() && sequence <= then->until;
}

std::byte* mapped_memories::at(std::uint64_t number, int rank, std::uint64_t offset) const {
  for (const mapped_memory& m : m_all)
    if (number && m.number == number) return static_cast<std::byte*>(m.region.peers[rank]) + offset;
  return nullptr;
}

}  // namespace sucl::core
