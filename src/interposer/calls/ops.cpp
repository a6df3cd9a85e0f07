// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Ops that the program makes and frees.
#include "interposer/arguments/own_ops.hpp"
#include "interposer/calls/entry.hpp"
#include "interposer/interposer.hpp"
#include "interposer/next.hpp"

using namespace sucl::interposer;

SUCL_MPI_FUNCTION MPI_Op_create(MPI_User_function* function, int commutes, MPI_Op* op) {
  const int code = SUCL_NEXT_OR_LIBRARY(Op_create)(function, commutes, op);
  if (code == MPI_SUCCESS) own_ops::add(*op);
  return code;
}
SUCL_PROFILED(Op_create, (MPI_User_function * function, int commutes, MPI_Op* op),
              (function, commutes, op))

#if MPI_VERSION >= 4 && !defined(SUCL_MPI_WITHOUT_LARGE_COUNTS)
SUCL_MPI_FUNCTION MPI_Op_create_c(MPI_User_function_c* function, int commutes, MPI_Op* op) {
  const int code = SUCL_NEXT_OR_LIBRARY(Op_create_c)(function, commutes, op);
  if (code == MPI_SUCCESS) own_ops::add(*op);
  return code;
}
SUCL_PROFILED(Op_create_c, (MPI_User_function_c * function, int commutes, MPI_Op* op),
              (function, commutes, op))
#endif

SUCL_MPI_FUNCTION MPI_Op_free(MPI_Op* op) {
  if (!op || !own_ops::remove(*op)) return SUCL_NEXT_OR_LIBRARY(Op_free)(op);
  *op = MPI_OP_NULL;
  return MPI_SUCCESS;
}
SUCL_PROFILED(Op_free, (MPI_Op * op), (op))
