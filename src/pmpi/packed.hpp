// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Memory described by MPI datatypes, as the contiguous bytes that SuCL moves.
#pragma once

#include "pmpi/types.hpp"

#include <mpi.h>

#include <limits>
#include <vector>

namespace sucl::pmpi {

/// Equal blocks of elements, one behind the other in a program's memory, with data of at most
/// most_bytes each. Ranks may describe the same data with different types, so what is only moved is
/// always moved as bytes; elements with gaps are packed.
class packed {
 public:
  static constexpr std::uint64_t most_bytes = std::numeric_limits<int>::max();

  packed(const void* base, int elements, MPI_Datatype type, int blocks)
      : m_base(static_cast<char*>(const_cast<void*>(base))),
        m_elements(elements),
        m_type(type),
        m_facts(facts_of(type)),
        m_blocks(blocks) {}

  std::uint64_t block_bytes() const {
    return m_facts.size * static_cast<std::uint64_t>(m_elements);
  }
  bool fits() const { return m_elements >= 0 && block_bytes() <= most_bytes; }

  /// The bytes: the program's own where they are contiguous, else a copy to be filled.
  void* data() {
    if (m_facts.dense || m_blocks == 0) return m_base;
    m_copy.resize(block_bytes() * static_cast<std::uint64_t>(m_blocks));
    return m_copy.data();
  }
  /// Fills the copy from the program's memory, after data().
  void load() { load(0, m_blocks); }
  void load(int first, int last);
  /// Fills the program's memory from the copy.
  void store() const;

  /// Packs the one block there is into `to`, or unpacks it.
  void write(char* to) const { pack(0, to); }
  void read(const char* from) const { unpack(0, from); }

 private:
  char* place(int block) const {
    return m_base + static_cast<std::int64_t>(block) * m_elements * m_facts.extent;
  }
  std::uint64_t in_copy(int block) const {
    return block_bytes() * static_cast<std::uint64_t>(block);
  }

  void pack(int block, char* to) const;
  void unpack(int block, const char* from) const;

  char* m_base;
  int m_elements;
  MPI_Datatype m_type;
  type_facts m_facts;
  int m_blocks;
  std::vector<char> m_copy;
};

}  // namespace sucl::pmpi
