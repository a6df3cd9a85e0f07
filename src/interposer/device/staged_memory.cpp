// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/device/staged_memory.hpp"

#include "interposer/device/drivers.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace sucl::interposer::device {

staged_region::staged_region(const owner& of, void* base, std::vector<rows> in,
                             std::vector<rows> out)
    : m_of(of), m_device(static_cast<char*>(base)), m_in(std::move(in)), m_out(std::move(out)) {
  std::ptrdiff_t first = std::numeric_limits<std::ptrdiff_t>::max(), last = 0;
  bool any = false;
  for (const auto* some : {&m_in, &m_out})
    for (const rows& r : *some) {
      first = std::min(first, r.begin());
      last = any ? std::max(last, r.end()) : r.end();
      any = true;
    }
  m_bytes = static_cast<std::size_t>(last - first);
  m_memory = take_host_memory(*m_of.by, m_bytes);
  m_host = static_cast<char*>(m_memory) - first;
}

staged_region::staged_region(staged_region&& other) noexcept
    : m_of(other.m_of),
      m_device(other.m_device),
      m_host(other.m_host),
      m_memory(std::exchange(other.m_memory, nullptr)),
      m_bytes(other.m_bytes),
      m_in(std::move(other.m_in)),
      m_out(std::move(other.m_out)) {}

staged_region::~staged_region() {
  if (m_memory) give_back_host_memory(*m_of.by, m_memory, m_bytes);
}

}  // namespace sucl::interposer::device
