// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What modules for the standard ABI are linked with where there may be no library: the names of the
// functions. It is never loaded: libmpi_abi.so.1 is found where the program or the system has it.
#define SUCL_MPI(name, ...)                                                        \
  __attribute__((visibility("default"))) int MPI_##name(__VA_ARGS__) { return 1; } \
  __attribute__((visibility("default"))) int PMPI_##name(__VA_ARGS__) { return 1; }
#include "mpi.h"
