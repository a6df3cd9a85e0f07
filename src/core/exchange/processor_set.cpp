// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/exchange/processor_set.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

namespace sucl::core {

// The system wants room for all processors that its kernel may have, and does not say for how many.
processor_set processor_set::own() {
  struct release {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
  };
  processor_set result;
  for (std::size_t room = CPU_SETSIZE; room <= most; room *= 2) {
    const std::unique_ptr<cpu_set_t, release> set(CPU_ALLOC(room));
    const std::size_t bytes = CPU_ALLOC_SIZE(room);
    if (!set) return result;
    CPU_ZERO_S(bytes, set.get());
    if (sched_getaffinity(0, bytes, set.get()) == 0) {
      for (std::size_t i = 0; i < room; ++i)
        if (CPU_ISSET_S(i, bytes, set.get())) result.add(i, i);
      return result;
    }
    if (errno != EINVAL) return result;
  }
  return result;
}

std::string processor_set::text() const {
  std::string text;
  for (std::size_t i = 0; i < m_has.size(); ++i) {
    if (!m_has[i]) continue;
    const std::size_t first = i;
    while (has(i + 1)) ++i;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (i > first) text += '-' + std::to_string(i);
  }
  return text;
}

processor_set processor_set::of(const std::string& text) {
  processor_set set;
  for (const char* at = text.c_str(); *at >= '0' && *at <= '9';) {
    char* end = nullptr;
    const auto first = std::strtoul(at, &end, 10);
    const auto last = *end == '-' ? std::strtoul(end + 1, &end, 10) : first;
    set.add(first, last);
    at = *end == ',' ? end + 1 : end;
  }
  return set;
}

void processor_set::add(std::size_t first, std::size_t last) {
  last = std::min(last, most - 1);
  if (first > last) return;
  if (m_has.size() <= last) m_has.resize(last + 1);
  std::fill(m_has.begin() + static_cast<std::ptrdiff_t>(first),
            m_has.begin() + static_cast<std::ptrdiff_t>(last) + 1, true);
}

void processor_set::add(const processor_set& others) {
  for (std::size_t i = 0; i < others.m_has.size(); ++i)
    if (others.m_has[i]) add(i, i);
}

std::size_t processor_set::count() const {
  return static_cast<std::size_t>(std::count(m_has.begin(), m_has.end(), true));
}

}  // namespace sucl::core
