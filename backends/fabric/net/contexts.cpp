// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "net/contexts.hpp"

#include <algorithm>

namespace sucl::fabric {

// The lowest number from one on whose context is free here, which it takes; or none.
std::uint64_t contexts::propose(std::uint64_t from) {
  const std::lock_guard hold(m_lock);
  from = std::max(from, m_next);
  for (std::uint64_t number = from; number < from + count; ++number)
    if (!m_taken[number % count]) {
      m_taken[number % count] = true;
      return number;
    }
  return none;
}

void contexts::release(std::uint64_t number) {
  if (number == none) return;
  const std::lock_guard hold(m_lock);
  m_taken[number % count] = false;
}

// Every rank proposes its lowest; all continue from the highest of these. A context comes
// again only after all others, so that what is left of old messages meets no receive.
std::optional<std::uint32_t> contexts::agree(const gather_function& gather) {
  for (std::uint64_t from = 0;;) {
    const std::uint64_t mine = propose(from);
    std::vector<std::uint64_t> all;
    try {
      all = gather(mine);
    } catch (...) {
      release(mine);
      throw;
    }
    from = *std::max_element(all.begin(), all.end());
    if (std::all_of(all.begin(), all.end(), [&](auto n) { return n == from; }) && from != none) {
      const std::lock_guard hold(m_lock);
      m_next = std::max(m_next, from + 1);
      return static_cast<std::uint32_t>(from % count);
    }
    release(mine);
    if (from == none) return std::nullopt;
  }
}

void contexts::give_back(std::uint32_t context) { release(context); }

}  // namespace sucl::fabric
