// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// To be loaded beside the random collectives, as a library that fails: PMPI_Scatterv returns
// MPI_ERR_COUNT, and MPI_Scatterv the same or, by SUCL_TEST_FAILING, another error (`other`).
// `often`: so do more of those that make the references.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdlib>
#include <string>

#define FAILING extern "C" __attribute__((visibility("default"))) int

namespace {

bool is(const char* how) {
  const char* setting = std::getenv("SUCL_TEST_FAILING");
  return setting && std::string(setting) == how;
}

// The library's function, which one of the same name here hides.
template <class Function>
Function* hidden(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

FAILING PMPI_Scatterv(const void*, const int*, const int*, MPI_Datatype, void*, int, MPI_Datatype,
                      int, MPI_Comm) {
  return MPI_ERR_COUNT;
}

FAILING MPI_Scatterv(const void*, const int*, const int*, MPI_Datatype, void*, int, MPI_Datatype,
                     int, MPI_Comm) {
  return is("other") ? MPI_ERR_TYPE : MPI_ERR_COUNT;
}

FAILING PMPI_Gatherv(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                     const int* counts, const int* displs, MPI_Datatype recv_type, int root,
                     MPI_Comm comm) {
  if (is("often")) return MPI_ERR_COUNT;
  return hidden<decltype(PMPI_Gatherv)>("PMPI_Gatherv")(send, send_count, send_type, recv, counts,
                                                        displs, recv_type, root, comm);
}

FAILING PMPI_Alltoallv(const void* send, const int* send_counts, const int* send_displs,
                       MPI_Datatype send_type, void* recv, const int* recv_counts,
                       const int* recv_displs, MPI_Datatype recv_type, MPI_Comm comm) {
  if (is("often")) return MPI_ERR_COUNT;
  return hidden<decltype(PMPI_Alltoallv)>("PMPI_Alltoallv")(
      send, send_counts, send_displs, send_type, recv, recv_counts, recv_displs, recv_type, comm);
}
