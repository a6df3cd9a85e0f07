// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Processes that are started by the program, which have a SuCL of their own: collectives between
// them and their parents are the library's. To be run interposed, without trials.
#include <mpi.h>

#include <cstdio>

namespace {

int g_failures = 0;

void sums(MPI_Comm comm, int expected) {
  const int one = 1;
  for (int i = 0; i < 12; ++i) {
    int sum = -1, later = -1;
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Iallreduce(&one, &later, 1, MPI_INT, MPI_SUM, comm, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (sum != expected || later != expected) ++g_failures;
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int size = 0, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  constexpr int children = 2;
  MPI_Comm between = MPI_COMM_NULL, all = MPI_COMM_NULL, half = MPI_COMM_NULL;
  MPI_Comm_get_parent(&between);
  const bool is_child = between != MPI_COMM_NULL;
  sums(MPI_COMM_WORLD, size);
  if (!is_child)
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, children, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between,
                   MPI_ERRCODES_IGNORE);
  sums(between, is_child ? size : children);  // those of the other group
  MPI_Intercomm_merge(between, is_child, &all);
  int both = 0;
  MPI_Comm_size(all, &both);
  sums(all, both);
  MPI_Comm_split(all, is_child, rank, &half);
  sums(half, size);
  std::printf("%s %d: %d failures\n", is_child ? "child" : "rank", rank, g_failures);
  std::fflush(stdout);
  int worst = 0;
  MPI_Allreduce(&g_failures, &worst, 1, MPI_INT, MPI_MAX, all);
  MPI_Comm_free(&half);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&between);
  MPI_Finalize();
  return worst == 0 ? 0 : 1;
}
