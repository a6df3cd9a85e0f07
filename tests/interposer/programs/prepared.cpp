// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Persistent collectives that the program makes before any other call on a communicator, more than
// SuCL executes at a time, and starts all the while: in two of three rounds on some ranks before
// the blocking call in which SuCL may be set up, on others after it. Some are freed before. To be
// run interposed.
#include <mpi.h>

#include <cstdio>
#include <vector>

namespace {

int g_rank = 0, g_size = 1, g_failures = 0;

void expect(bool right, const char* what, int round) {
  if (right) return;
  ++g_failures;
  std::fprintf(stderr, "rank %d: %s is wrong in round %d\n", g_rank, what, round);
}

struct prepared {
  MPI_Request request = MPI_REQUEST_NULL;
  int in = 0, out = -1;
};

void expect_sum(const prepared& p, bool scan, int round) {
  const int last = scan ? g_rank : g_size - 1;
  expect(p.out == last * (last + 1) / 2 + round * (last + 1), scan ? "a scan" : "a sum", round);
}

void run(MPI_Comm of, int count) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(of, &comm);
  std::vector<prepared> all(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < all.size(); ++i) {
    prepared& p = all[i];
    if (i % 2)
      MPI_Scan_init(&p.in, &p.out, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &p.request);
    else
      MPI_Allreduce_init(&p.in, &p.out, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &p.request);
  }
  MPI_Request_free(&all[0].request);
  for (int round = 0; round < 24; ++round) {
    for (prepared& p : all) p.in = g_rank + round, p.out = -1;
    const bool ahead = ((round % 3 == 2 ? 0 : g_rank) + round) % 2 == 0;
    const auto start = [&] {
      for (std::size_t i = 1; i < all.size(); ++i) MPI_Start(&all[i].request);
    };
    if (ahead) start();
    int sum = -1;
    MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect(sum == g_size * (g_size - 1) / 2, "a blocking sum", round);
    if (!ahead) start();
    for (std::size_t i = 1; i < all.size(); ++i) {
      MPI_Wait(&all[i].request, MPI_STATUS_IGNORE);
      expect_sum(all[i], i % 2, round);
    }
  }
  MPI_Comm_free(&comm);
  for (std::size_t i = 1; i < all.size(); ++i) MPI_Request_free(&all[i].request);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  for (const int count : {2, 5, 24}) run(MPI_COMM_WORLD, count);
  std::printf("rank %d: %d failures\n", g_rank, g_failures);
  std::fflush(stdout);
  MPI_Finalize();
  return g_failures == 0 ? 0 : 1;
}
