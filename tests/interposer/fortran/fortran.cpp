// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Calls what a program in Fortran calls, as its compiler would, so that no such compiler is needed.
// With Intel MPI, whose handles are the same numbers in both languages. To be run interposed.
#include <mpi.h>

#include <cstdio>

extern "C" {
void mpi_init_(int* code);
void mpi_finalize_(int* code);
void mpi_comm_rank_(int* comm, int* rank, int* code);
void mpi_comm_size_(int* comm, int* size, int* code);
void mpi_barrier_(int* comm, int* code);
void mpi_allreduce_(void* in, void* out, int* n, int* type, int* op, int* comm, int* code);
void mpi_iallreduce_(void* in, void* out, int* n, int* type, int* op, int* comm, int* request,
                     int* code);
void mpi_bcast_(void* data, int* n, int* type, int* root, int* comm, int* code);
void mpi_wait_(int* request, int* status, int* code);
extern int mpipriv1_[3];  // MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE
}

int main() {
  int code = 0, rank = 0, size = 1, failures = 0;
  int comm = MPI_COMM_WORLD, sum = MPI_SUM, real = MPI_DOUBLE_PRECISION, integer = MPI_INTEGER;
  mpi_init_(&code);
  mpi_comm_rank_(&comm, &rank, &code);
  mpi_comm_size_(&comm, &size, &code);
  for (int i = 0; i < 6; ++i) mpi_barrier_(&comm, &code);
  for (int i = 0; i < 20; ++i) {
    double x = rank + i, all = -1, later = -1;
    int one = 1, request = MPI_REQUEST_NULL, root = i % size, word = rank == root ? i : -1;
    int status[sizeof(MPI_Status) / sizeof(int)];
    mpi_allreduce_(&x, &all, &one, &real, &sum, &comm, &code);
    mpi_iallreduce_(&x, &later, &one, &real, &sum, &comm, &request, &code);
    mpi_wait_(&request, status, &code);
    mpi_allreduce_(&mpipriv1_[1], &x, &one, &real, &sum, &comm, &code);
    mpi_bcast_(&word, &one, &integer, &root, &comm, &code);
    const double expected = size * (size - 1) / 2.0 + size * i;
    failures += all != expected || later != expected || x != expected || word != i || code != 0;
  }
  std::printf("rank %d: %d failures\n", rank, failures);
  std::fflush(stdout);
  mpi_finalize_(&code);
  return failures != 0;
}
