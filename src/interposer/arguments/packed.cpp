// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/arguments/packed.hpp"

#include <algorithm>
#include <utility>

namespace sucl::interposer {

namespace {

// What the library's functions take at a time: their sizes are ints.
constexpr std::uint64_t max_part_bytes = std::uint64_t{1} << 30;

// Calls `each(first, elements, bytes)` for parts of a block of elements.
template <class Each>
void in_parts(std::int64_t elements, const type_facts& facts, const Each& each) {
  const auto most = static_cast<std::int64_t>(
      std::max<std::uint64_t>(max_part_bytes / std::max<std::uint64_t>(facts.size, 1), 1));
  for (std::int64_t done = 0; done < elements; done += most) {
    const auto n = static_cast<int>(std::min(most, elements - done));
    each(done, n, static_cast<int>(facts.size * static_cast<std::uint64_t>(n)));
  }
}

}  // namespace

packed::packed(const void* base, std::vector<std::int64_t> elements,
               std::vector<std::int64_t> displs, MPI_Datatype type)
    : packed(base, 0, type, static_cast<int>(elements.size())) {
  m_first = displs.empty() ? 0 : *std::min_element(displs.begin(), displs.end());
  m_counts = std::move(elements);
  m_displs = std::move(displs);
}

bool packed::fits() const {
  if (!m_facts.usable || m_base == MPI_IN_PLACE) return false;
  bool any = m_counts.empty() && m_elements > 0;
  const int different = m_counts.empty() ? std::min(m_blocks, 1) : m_blocks;
  for (int b = 0; b < different; ++b) {
    if (elements(b) < 0 || block_bytes(b) > base::max_bytes) return false;
    any = any || elements(b) > 0;
  }
  // Of other types the displacements may be addresses.
  if (any && m_base == nullptr && m_facts.dense) return false;
  return m_elements >= 0;
}

// As MPICH reckons it, by the size of the data.
char* packed::found_at(int block) const {
  const std::int64_t before =
      m_displs.empty() ? block * m_elements : m_displs[static_cast<std::size_t>(block)];
  return m_base + before * static_cast<std::int64_t>(m_facts.size);
}

bool packed::is_aliased(int block, const packed& other, int others) const {
#if defined(OPEN_MPI)
  static_cast<void>(block), static_cast<void>(other), static_cast<void>(others);
  return false;  // it does not check, and such calls work
#else
  return m_type == other.m_type && elements(block) == other.elements(others) &&
         elements(block) > 0 && found_at(block) == other.found_at(others);
#endif
}

std::uint64_t packed::offset(int block) const {
  if (m_facts.dense)
    return static_cast<std::uint64_t>(address(block) - m_base - m_first * m_facts.extent);
  std::uint64_t before = 0;
  for (int b = 0; b < block; ++b) before += block_bytes(b);
  return before;
}

void* packed::data() {
  if (m_facts.dense || m_blocks == 0) return m_base + m_first * m_facts.extent;
  m_copy.resize(offset(m_blocks));
  return m_copy.data();
}

void packed::load(int first, int last) {
  if (m_copy.empty()) return;
  for (int b = first; b < last; ++b) {
    char* to = m_copy.data() + offset(b);
    in_parts(elements(b), m_facts, [&](std::int64_t from, int n, int bytes) {
      int at = 0;
      PMPI_Pack(address(b) + from * m_facts.extent, n, m_type, to, bytes, &at, MPI_COMM_SELF);
      to += bytes;
    });
  }
}

void packed::store() const {
  if (m_copy.empty()) return;
  for (int b = 0; b < m_blocks; ++b) {
    const char* from = m_copy.data() + offset(b);
    in_parts(elements(b), m_facts, [&](std::int64_t to, int n, int bytes) {
      int at = 0;
      PMPI_Unpack(from, bytes, &at, address(b) + to * m_facts.extent, n, m_type, MPI_COMM_SELF);
      from += bytes;
    });
  }
}

void packed::keep_type() {
  if (m_facts.dense || m_facts.predefined || m_blocks == 0 || m_own_type) return;
  MPI_Datatype kept = MPI_DATATYPE_NULL;
  if (PMPI_Type_contiguous(1, m_type, &kept) != MPI_SUCCESS) return;
  PMPI_Type_commit(&kept);
  m_type = kept;
  m_own_type = true;
}

void packed::release_type() {
  if (m_own_type) PMPI_Type_free(&m_type);
  m_own_type = false;
}

}  // namespace sucl::interposer
