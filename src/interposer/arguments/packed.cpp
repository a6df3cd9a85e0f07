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

void packed::take(std::vector<std::int64_t> elements, std::vector<std::int64_t> displs) {
  m_counts = std::move(elements);
  m_displs = std::move(displs);
  m_dense = true;
  bool any = false;
  for (int b = 0; b < m_blocks; ++b) {
    std::int64_t& at = m_displs[static_cast<std::size_t>(b)];
    if (m_kinds.size() == 1) at *= facts(b).extent;
    if (m_counts[static_cast<std::size_t>(b)] <= 0) continue;  // where it is means nothing
    m_dense = m_dense && facts(b).dense;
    m_first = any ? std::min(m_first, at) : at;
    any = true;
  }
}

// Whether the memory of an element begins where the element does, as it does not where a type has
// addresses of its own.
bool packed::begins_at_base(const kind& k) {
  if (k.facts.dense || k.facts.predefined) return true;
  MPI_Aint lower = 0, extent = 0;
  PMPI_Type_get_true_extent(k.type, &lower, &extent);
  return lower == 0;
}

// Libraries look at the type of what is empty, but of arrays of types only some do.
bool packed::fits() const {
#if defined(OPEN_MPI)
  constexpr bool checks_all = true;
#else
  constexpr bool checks_all = false;
#endif
  if (m_base == MPI_IN_PLACE || m_elements < 0) return false;
  if (!has_types() && !m_kinds.empty() && !m_kinds[0].facts.usable) return false;
  const int different = m_counts.empty() ? std::min(m_blocks, 1) : m_blocks;
  for (int b = 0; b < different; ++b) {
    if (elements(b) < 0) return false;
    if (elements(b) == 0 && !checks_all) continue;
    if (!facts(b).usable || block_bytes(b) > base::max_bytes) return false;
    // Of other types, and elsewhere, displacements may be addresses. Nothing may be anywhere.
    if (block_bytes(b) > 0 && !m_base && displacement(b) == 0 && begins_at_base(kind_at(b)))
      return false;
  }
  return true;
}

// As MPICH reckons it, by the size of the data.
char* packed::found_at(int block) const {
  const std::int64_t extent = std::max<std::int64_t>(facts(block).extent, 1);
  return m_base + displacement(block) / extent * static_cast<std::int64_t>(facts(block).size);
}

bool packed::is_aliased(int block, const packed& other, int others) const {
#if defined(OPEN_MPI)
  static_cast<void>(block), static_cast<void>(other), static_cast<void>(others);
  return false;  // it does not check, and such calls work
#else
  return kind_at(block).type == other.kind_at(others).type &&
         elements(block) == other.elements(others) && elements(block) > 0 &&
         found_at(block) == other.found_at(others);
#endif
}

std::uint64_t packed::offset(int block) const {
  if (m_dense)
    return elements(block) > 0 ? static_cast<std::uint64_t>(displacement(block) - m_first) : 0;
  std::uint64_t before = 0;
  for (int b = 0; b < block; ++b) before += block_bytes(b);
  return before;
}

void* packed::data() {
  if (m_dense || m_blocks == 0) return m_base + m_first;
  std::uint64_t all = 0;
  for (int b = 0; b < m_blocks; ++b) all += block_bytes(b);
  m_copy.resize(all);
  return m_copy.data();
}

void packed::load(int first, int last) {
  if (m_copy.empty()) return;
  for (int b = first; b < last; ++b) {
    char* to = m_copy.data() + offset(b);
    in_parts(elements(b), facts(b), [&](std::int64_t from, int n, int bytes) {
      int at = 0;
      PMPI_Pack(address(b) + from * facts(b).extent, n, kind_at(b).type, to, bytes, &at,
                MPI_COMM_SELF);
      to += bytes;
    });
  }
}

void packed::store() const {
  if (m_copy.empty()) return;
  for (int b = 0; b < m_blocks; ++b) {
    const char* from = m_copy.data() + offset(b);
    in_parts(elements(b), facts(b), [&](std::int64_t to, int n, int bytes) {
      int at = 0;
      PMPI_Unpack(from, bytes, &at, address(b) + to * facts(b).extent, n, kind_at(b).type,
                  MPI_COMM_SELF);
      from += bytes;
    });
  }
}

void packed::keep_types() {
  if (m_dense || m_blocks == 0) return;
  for (kind& k : m_kinds) {
    MPI_Datatype kept = MPI_DATATYPE_NULL;
    if (k.own || k.facts.predefined || !k.facts.usable) continue;
    if (PMPI_Type_contiguous(1, k.type, &kept) != MPI_SUCCESS) continue;
    PMPI_Type_commit(&kept);
    k.type = kept;
    k.own = true;
  }
}

void packed::release_types() {
  for (kind& k : m_kinds)
    if (std::exchange(k.own, false)) PMPI_Type_free(&k.type);
}

}  // namespace sucl::interposer
