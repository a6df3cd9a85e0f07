// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How MPI reduces so that results are as docs/reference/operations.md says: its own op where that
/// agrees, an op of this module where it does not.
#pragma once

#include "native.hpp"

#include <vector>

namespace sucl::mpi_module {

/// A function of an MPI_Op, for as large counts as the library takes.
using op_function = void (*)(void* in, void* inout, count_type* count, MPI_Datatype* type);

/// How MPI reduces elements of a type.
struct reduction {
  /// MPI's own op; MPI_OP_NULL: it has none, or one that differs.
  MPI_Op native = MPI_OP_NULL;
  /// What an op of this module does instead; null: nothing, or `native` is there.
  op_function own = nullptr;
  /// Makes every NaN of a result the one that results have; null: there is none to be made.
  void (*unify_nans)(void* results, std::uint64_t count) = nullptr;
  /// The datatype; one that MPI moves as bytes where only `own` interprets it.
  MPI_Datatype type = MPI_DATATYPE_NULL;

  bool is_there() const { return native != MPI_OP_NULL || own != nullptr; }
};

/// How `op` reduces elements of `type`; nothing for avg and for floats of 16 and 8 bits, which the
/// core computes by other means.
reduction reduction_of(sucl_op op, sucl_type type);

/// Ops of this module, made once for each function.
class own_ops {
 public:
  /// The op for a function that commutes; returns MPI's code.
  int find(op_function function, MPI_Op* found);
  void free_all();

 private:
  struct entry {
    op_function function;
    MPI_Op native;
  };
  std::vector<entry> m_entries;
};

}  // namespace sucl::mpi_module
