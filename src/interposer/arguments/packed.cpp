// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/arguments/packed.hpp"

#include <algorithm>

namespace sucl::interposer {

packed::packed(const void* base, const int* elements, const int* displs, MPI_Datatype type,
               int blocks)
    : packed(base, 0, type, blocks) {
  m_counts.assign(elements, elements + blocks);
  m_displs.assign(displs, displs + blocks);
  m_first = blocks > 0 ? *std::min_element(displs, displs + blocks) : 0;
}

bool packed::fits() const {
  if (!m_facts.usable || m_base == MPI_IN_PLACE) return false;
  bool any = m_counts.empty() && m_elements > 0;
  const int different = m_counts.empty() ? std::min(m_blocks, 1) : m_blocks;
  for (int b = 0; b < different; ++b) {
    if (elements(b) < 0 || block_bytes(b) > max_bytes) return false;
    any = any || elements(b) > 0;
  }
  // Of other types the displacements may be addresses.
  if (any && m_base == nullptr && m_facts.dense) return false;
  return m_elements >= 0;
}

// As MPICH reckons it, by the size of the data.
char* packed::found_at(int block) const {
  const std::int64_t before = m_displs.empty() ? static_cast<std::int64_t>(block) * m_elements
                                               : m_displs[static_cast<std::size_t>(block)];
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
    int at = 0;
    PMPI_Pack(address(b), elements(b), m_type, m_copy.data() + offset(b),
              static_cast<int>(block_bytes(b)), &at, MPI_COMM_SELF);
  }
}

void packed::store() const {
  if (m_copy.empty()) return;
  for (int b = 0; b < m_blocks; ++b) {
    int at = 0;
    PMPI_Unpack(m_copy.data() + offset(b), static_cast<int>(block_bytes(b)), &at, address(b),
                elements(b), m_type, MPI_COMM_SELF);
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
