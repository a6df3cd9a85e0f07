// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "runtime/exec/shared.hpp"

#include "runtime/core_services.hpp"
#include "runtime/exec/program.hpp"

#include <sys/mman.h>

#include <cstring>
#include <utility>

namespace sucl::core {

shared_memory::shared_memory(const channel& via, const placement& where, const sharing& how)
    : m_via(via), m_how(how), m_size(static_cast<std::uint32_t>(where.size)) {
  static_assert(first_bytes + (most_channels - 1) * line <= words_bytes);
  static_assert(inline_bytes + sizeof(std::uint64_t) == first_bytes);
  std::uint64_t bytes = head_bytes + m_how.slots * words_bytes;
  for (std::uint64_t stride = least_stride; stride <= m_how.slot_bytes; stride *= 2)
    bytes += stride * places_of(stride, m_how);
  m_region.struct_size = sizeof m_region;
  if (const auto status = via.table->memory_create(via.comm, bytes, &m_region))
    throw_last(status, via.table->name, "communicator creation", where.rank);
  for (std::uint32_t r = 0; r < m_size; ++r) {
    m_parts.push_back(static_cast<std::byte*>(m_region.peers[r]));
    if (!where.near(static_cast<int>(r))) m_parts.back() = nullptr;
    m_complete = m_complete && (m_parts.back() || !where.near(static_cast<int>(r)));
  }
  if (!m_complete) return;
  // The words are looked at before anything is written: their pages had better be there.
  std::memset(m_parts[static_cast<std::size_t>(where.rank)], 0,
              head_bytes + m_how.slots * words_bytes);
  m_rings.push_back({0, m_how.slots, true, {}});
  for (std::uint32_t s = 0; s < m_how.slots; ++s) {
    for (std::byte* part : m_parts) {
      const auto in_part = [&](std::uint64_t offset) { return part ? part + offset : nullptr; };
      m_words.push_back(in_part(head_bytes + s * words_bytes));
      m_rings[0].memory.push_back(in_part(head_bytes + s * words_bytes + sizeof(std::uint64_t)));
    }
  }
  std::uint64_t begin = head_bytes + m_how.slots * words_bytes;
  for (std::uint64_t stride = least_stride; stride <= m_how.slot_bytes; stride *= 2) {
    ring r{stride, places_of(stride, m_how), false, {}};
    for (std::uint32_t place = 0; place < r.places; ++place, begin += stride)
      for (std::byte* part : m_parts) r.memory.push_back(part ? part + begin : nullptr);
    m_rings.push_back(std::move(r));
  }
}

// Has the system bring the pages of a ring at once, in which each would otherwise cost an
// interruption when a run comes to it. Where it cannot, they come so.
void shared_memory::touch(const ring& r) noexcept {
  r.touched = true;
  constexpr int populate_for_writing = 23;  // MADV_POPULATE_WRITE of Linux 5.14
  const std::size_t ranks = r.memory.size() / r.places;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    if (std::byte* begin = r.memory[rank])
      madvise(begin, r.places * r.stride, populate_for_writing);
}

shared_memory::~shared_memory() {
  if (m_region.handle) m_via.table->memory_destroy(m_via.comm, &m_region);
}

}  // namespace sucl::core
