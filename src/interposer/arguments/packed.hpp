// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Memory described by MPI datatypes, as the contiguous bytes that SuCL moves.
#pragma once

#include "base/sizes.hpp"
#include "interposer/arguments/types.hpp"

#include <mpi.h>

#include <vector>

namespace sucl::interposer {

/// Blocks of elements in a program's memory. Ranks may
/// describe the same data with different types, so what is only moved is always moved as bytes;
/// elements with gaps are packed.
class packed {
 public:
  /// Nothing.
  packed() = default;
  /// Equal blocks, one behind the other.
  packed(const void* base, std::int64_t elements, MPI_Datatype type, int blocks)
      : m_base(static_cast<char*>(const_cast<void*>(base))),
        m_elements(elements),
        m_blocks(blocks),
        m_kinds(1, kind_of(type)),
        m_dense(m_kinds[0].facts.dense) {}
  /// Blocks of different sizes, at displacements in elements. The arrays are copied: MPI programs
  /// may change or free theirs once a non-blocking call has returned.
  template <class Count, class Displ>
  packed(const void* base, const Count* elements, const Displ* displs, MPI_Datatype type,
         int blocks)
      : packed(base, 0, type, blocks) {
    take(std::vector<std::int64_t>(elements, elements + blocks),
         std::vector<std::int64_t>(displs, displs + blocks));
  }
  /// Blocks of different types too, at displacements in bytes.
  template <class Count, class Displ>
  packed(const void* base, const Count* elements, const Displ* displs, const MPI_Datatype* types,
         int blocks)
      : m_base(static_cast<char*>(const_cast<void*>(base))), m_blocks(blocks) {
    for (int b = 0; b < blocks; ++b) m_kinds.push_back(kind_of(types[b]));
    take(std::vector<std::int64_t>(elements, elements + blocks),
         std::vector<std::int64_t>(displs, displs + blocks));
  }

  int blocks() const { return m_blocks; }
  const void* base() const { return m_base; }
  std::uint64_t block_bytes(int block = 0) const {
    return base::product(facts(block).size, static_cast<std::uint64_t>(elements(block)));
  }
  /// Where the data of a block begins, in bytes from data().
  std::uint64_t offset(int block) const;
  /// Whether all of it is as MPI wants it, and small enough. Where not, the library is to say why.
  bool fits() const;
  /// Whether a block has the memory of a block of `other`, of the same type and length: what MPI
  /// forbids, and some libraries find out.
  bool is_aliased(int block, const packed& other, int others) const;

  /// The bytes: the program's own where they are contiguous, else a copy to be filled.
  void* data();
  /// Fills the copy from the program's memory, after data().
  void load() { load(0, m_blocks); }
  void load(int first, int last);
  /// Fills the program's memory from the copy.
  void store() const;

  /// Makes the types outlive the program's handles of them, or gives them back. The program's
  /// callbacks for attributes of the types are not called.
  void keep_types();
  void release_types();

 private:
  struct kind {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    type_facts facts;
    bool own = false;  ///< made by keep_types()
  };
  static kind kind_of(MPI_Datatype type) { return {type, facts_of(type), false}; }
  void take(std::vector<std::int64_t> elements, std::vector<std::int64_t> displs);
  const kind& kind_at(int block) const {
    return m_kinds[m_kinds.size() == 1 ? 0 : static_cast<std::size_t>(block)];
  }
  const type_facts& facts(int block) const { return kind_at(block).facts; }
  bool has_types() const { return m_kinds.size() > 1; }
  static bool begins_at_base(const kind& k);
  char* found_at(int block) const;
  std::int64_t elements(int block) const {
    return m_counts.empty() ? m_elements : m_counts[static_cast<std::size_t>(block)];
  }
  std::int64_t displacement(int block) const {
    return m_displs.empty() ? block * m_elements * facts(block).extent
                            : m_displs[static_cast<std::size_t>(block)];
  }
  char* address(int block) const { return m_base + displacement(block); }

  char* m_base = nullptr;
  std::int64_t m_elements = 0;
  int m_blocks = 0;
  std::vector<kind> m_kinds;                     ///< one for all, or of each block
  std::vector<std::int64_t> m_counts, m_displs;  ///< of blocks of different sizes; in bytes
  std::int64_t m_first = 0;                      ///< the lowest displacement that has elements
  bool m_dense = false;                          ///< all that is not empty is
  std::vector<char> m_copy;
};

}  // namespace sucl::interposer
