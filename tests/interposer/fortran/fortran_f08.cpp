// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// A program that begins, completes requests and ends as one with the module mpi_f08 does, whose
// functions without buffers call the library by profiling names. With Intel MPI, whose handles are
// the same numbers in both languages. To be run interposed.
#include <mpi.h>

#include <cstdio>

extern "C" {
void mpi_init_f08_(int* code);
void mpi_finalize_f08_(int* code);
void mpi_start_f08_(int* request, int* code);
void mpi_wait_f08_(int* request, MPI_Status* status, int* code);
}

int main() {
  int code = 0, rank = 0, size = 1, failures = 0;
  mpi_init_f08_(&code);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 20; ++i) {
    int x = rank + i, all = -1, later = -1, request = MPI_REQUEST_NULL;
    MPI_Status status;
    MPI_Allreduce(&x, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Iallreduce(&x, &later, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    mpi_wait_f08_(&request, &status, &code);
    const int expected = size * (size - 1) / 2 + size * i;
    failures += all != expected || later != expected || request != MPI_REQUEST_NULL || code != 0;
    // A message goes the same ways.
    MPI_Send_init(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
    mpi_start_f08_(&request, &code);
    mpi_wait_f08_(&request, &status, &code);
    MPI_Request_free(&request);
  }
  std::printf("rank %d: %d failures\n", rank, failures);
  std::fflush(stdout);
  mpi_finalize_f08_(&code);
  return failures != 0;
}
