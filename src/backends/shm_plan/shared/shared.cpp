// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_plan/shared/shared.hpp"

#include "backends/shm_plan/plans/program.hpp"
#include "core/exchange/core_services.hpp"

#include <sys/mman.h>

#include <cstring>
#include <utility>

namespace sucl::core {

shared_memory::shared_memory(const backend_comm& via, const placement& where, const sharing& how)
    : m_via(via),
      m_how(how),
      m_rank(static_cast<std::uint32_t>(where.rank)),
      m_size(static_cast<std::uint32_t>(where.size)) {
  static_assert(first_bytes + (max_channels - 1) * line <= flags_bytes);
  static_assert(inline_bytes + sizeof(std::uint64_t) == first_bytes);
  std::uint64_t bytes = head_bytes + m_how.slots * flags_bytes;
  const std::uint64_t runs = m_how.slots + 1;
  const auto add_ring = [&](std::uint64_t length) {
    m_rings.push_back({bytes, length});
    bytes += length;
  };
  if (m_how.long_ring)
    add_ring(std::max(long_ring_bytes, runs * m_how.slot_bytes));
  else
    for (std::uint64_t most = grain; most <= m_how.slot_bytes; most *= 2) add_ring(runs * most);
  m_region.struct_size = sizeof m_region;
  if (const auto status = via.table->memory_create(via.comm, bytes, &m_region))
    throw_last(status, via.table->name, "communicator creation", where.rank);
  for (std::uint32_t r = 0; r < m_size; ++r) {
    m_parts.push_back(static_cast<std::byte*>(m_region.peers[r]));
    if (!where.near(static_cast<int>(r))) m_parts.back() = nullptr;
    m_complete = m_complete && (m_parts.back() || !where.near(static_cast<int>(r)));
  }
  if (!m_complete) return;
  // The flags are polled before anything is written: their pages are touched first.
  std::memset(m_parts[static_cast<std::size_t>(where.rank)], 0,
              head_bytes + m_how.slots * flags_bytes);
  for (std::uint32_t slot = 0; slot < m_how.slots; ++slot)
    for (std::byte* part : m_parts)
      m_flags.push_back(part ? part + head_bytes + slot * flags_bytes : nullptr);
  std::vector<std::byte*> boards;
  for (std::byte* part : m_parts) boards.push_back(part ? part + board_at : nullptr);
  m_board = call_board(std::move(boards), where.rank);
}

// Has the system bring the pages of a ring at once, in which each would otherwise cost an
// interruption when a run comes to it. Where it cannot, they come so. Every rank begins with its
// own part: then none waits for another one, and finds what is left there already.
void shared_memory::touch(const ring& r) const noexcept {
  r.touched = true;
  constexpr int populate_for_writing = 23;  // MADV_POPULATE_WRITE of Linux 5.14
  for (std::uint32_t k = 0; k < m_size; ++k)
    if (std::byte* part = m_parts[(m_rank + k) % m_size])
      madvise(part + r.begin, r.bytes, populate_for_writing);
}

shared_memory::~shared_memory() {
  if (m_region.handle) m_via.table->memory_destroy(m_via.comm, &m_region);
}

}  // namespace sucl::core
