// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// A program that begins, starts, completes and ends by MPI's profiling names, as a tool does for it
// or the library's Fortran, but calls collectives by the usual ones; it has a tool of its own for
// one of the completions. To be run interposed.
#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <vector>

namespace {

std::atomic<int> g_waits{0};
int g_rank = 0, g_size = 1, g_failures = 0;
constexpr int elements = 20000;

struct sum {
  std::vector<int> in = std::vector<int>(elements), out = std::vector<int>(elements);
  MPI_Request request = MPI_REQUEST_NULL;

  void set(int to) {
    in.assign(elements, g_rank + to);
    out.assign(elements, -1);
    added = to;
  }
  void start(int to) {
    set(to);
    MPI_Iallreduce(in.data(), out.data(), elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  }
  void check(const char* what) const {
    const int expected = g_size * (g_size - 1) / 2 + g_size * added;
    if (out.front() == expected && out.back() == expected) return;
    ++g_failures;
    std::printf("after %s: %d and %d instead of %d\n", what, out.front(), out.back(), expected);
  }
  int added = 0;
};

void complete_singly(int i) {
  sum s;
  s.start(i);
  MPI_Wait(&s.request, MPI_STATUS_IGNORE);
  s.check("the tool's MPI_Wait");
  s.start(i + 1);
  int done = 0;
  while (!done) PMPI_Request_get_status(s.request, &done, MPI_STATUS_IGNORE);
  s.check("PMPI_Request_get_status");
  PMPI_Wait(&s.request, MPI_STATUS_IGNORE);
  s.start(i + 2);
  for (done = 0; !done;) PMPI_Test(&s.request, &done, MPI_STATUS_IGNORE);
  s.check("PMPI_Test");
  g_failures += s.request != MPI_REQUEST_NULL;
}

void complete_many(int i) {
  for (int way = 0; way < 5; ++way) {
    sum a;
    sum b;
    a.start(i);
    b.start(i + 1);
    MPI_Request both[] = {a.request, b.request};
    int done = 0, index = 0, indices[2];
    if (way == 0) PMPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    while (way == 1 && !done) PMPI_Testall(2, both, &done, MPI_STATUSES_IGNORE);
    for (int n = 0; way == 2 && n < 2; ++n) PMPI_Waitany(2, both, &index, MPI_STATUS_IGNORE);
    for (int n = 0; way == 3 && n < 2; n += done)
      PMPI_Testany(2, both, &index, &done, MPI_STATUS_IGNORE);
    for (int n = 0; way == 4 && n < 2; n += done)
      PMPI_Waitsome(2, both, &done, indices, MPI_STATUSES_IGNORE);
    a.check("completing two");
    b.check("completing two");
    g_failures += both[0] != MPI_REQUEST_NULL || both[1] != MPI_REQUEST_NULL;
  }
}

void start_prepared() {
  sum s;
  MPI_Allreduce_init(s.in.data(), s.out.data(), elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                     MPI_INFO_NULL, &s.request);
  for (int i = 0; i < 20; ++i) {
    s.set(i);
    if (i % 2)
      PMPI_Start(&s.request);
    else
      PMPI_Startall(1, &s.request);
    PMPI_Wait(&s.request, MPI_STATUS_IGNORE);
    s.check("PMPI_Start");
  }
  PMPI_Request_free(&s.request);
}

}  // namespace

extern "C" int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  ++g_waits;
  return PMPI_Wait(request, status);
}

int main(int argc, char** argv) {
  PMPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  for (int i = 0; i < 20; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    complete_singly(i);
    complete_many(i);
  }
  start_prepared();
  g_failures += g_waits != 20;
  std::printf("rank %d: %d failures\n", g_rank, g_failures);
  std::fflush(stdout);
  PMPI_Finalize();
  return g_failures == 0 ? 0 : 1;
}
