// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Communicators that end before their set-up would pay, and one that lives long. To be run
// interposed, with trials: the summary shows how many calls came before set-ups.
#include <mpi.h>

#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1, failures = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto use = [&](int calls) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < calls; ++i) {
      // Ranks may think differently of what has ended: this one has ended on some of them only.
      MPI_Comm own = MPI_COMM_NULL;
      if (i == 0) MPI_Comm_split(comm, rank == 0, rank, &own);
      if (own != MPI_COMM_NULL) {
        for (int j = 0; j < (rank == 0 ? 1 : 40); ++j) MPI_Barrier(own);
        MPI_Comm_free(&own);
      }
      const int one = i + rank;
      int sum = -1;
      MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
      failures += sum != size * i + size * (size - 1) / 2;
    }
    MPI_Comm_free(&comm);
  };
  for (int i = 0; i < 30; ++i) use(12);
  use(3000);
  std::printf("rank %d: %d failures\n", rank, failures);
  std::fflush(stdout);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
