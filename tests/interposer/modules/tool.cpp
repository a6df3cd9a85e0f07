// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// A profiling tool of others, to be loaded beside the interposer: it counts calls and passes them
// on through MPI's profiling interface, as such tools do.
#include <mpi.h>

#include <atomic>
#include <cstdio>

#define TOOL extern "C" __attribute__((visibility("default"))) int

namespace {

std::atomic<int> g_collectives{0}, g_starts{0}, g_completions{0};

}  // namespace

TOOL MPI_Allreduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm) {
  ++g_collectives;
  return PMPI_Allreduce(send, recv, count, type, op, comm);
}

TOOL MPI_Iallreduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm, MPI_Request* request) {
  ++g_starts;
  return PMPI_Iallreduce(send, recv, count, type, op, comm, request);
}

TOOL MPI_Wait(MPI_Request* request, MPI_Status* status) {
  ++g_completions;
  return PMPI_Wait(request, status);
}

TOOL MPI_Finalize() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::printf("tool on rank %d: %d collectives, %d starts, %d completions\n", rank,
              g_collectives.load(), g_starts.load(), g_completions.load());
  std::fflush(stdout);
  return PMPI_Finalize();
}
