// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Element types and operators as MPI knows them.
#pragma once

#include "native.hpp"

#include <vector>

namespace sucl::mpi_module {

/// Whether MPI defines `op` for `type`. False for avg and for floats of 16 and 8 bits.
bool reducible(sucl_op op, sucl_type type);

/// MPI's operator; MPI_OP_NULL for one that it lacks.
MPI_Op native_op(sucl_op op);

/// The MPI type that reduces elements of `type`; MPI_DATATYPE_NULL where reducible() is never true.
MPI_Datatype reduced_type(sucl_type type);

/// A committed type of `bytes` bytes, of any size; the caller frees it.
int make_block(std::uint64_t bytes, MPI_Datatype* block);

/// Types that move opaque elements, made once for each size.
class block_types {
 public:
  /// The type for elements of `bytes` bytes; returns MPI's code.
  int find(std::uint64_t bytes, MPI_Datatype* found);
  void free_all();

 private:
  struct entry {
    std::uint64_t bytes;
    MPI_Datatype native;
  };
  std::vector<entry> m_entries;
};

}  // namespace sucl::mpi_module
