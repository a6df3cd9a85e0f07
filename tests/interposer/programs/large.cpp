// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// More than 2^31 elements in one call, and more than is packed at a time.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#if MPI_VERSION >= 4

namespace {

int g_failures = 0;

char value_at(std::size_t i) { return static_cast<char>(i * 7 + (i >> 20)); }

// Every `step` bytes are one element of `type`.
void broadcast(MPI_Count count, MPI_Datatype type, std::size_t step, int rank) {
  std::vector<char> data(static_cast<std::size_t>(count) * step, rank == 0 ? '\0' : '?');
  if (rank == 0)
    for (std::size_t i = 0; i < data.size(); i += step) data[i] = value_at(i);
  if (MPI_Bcast_c(data.data(), count, type, 0, MPI_COMM_WORLD) != MPI_SUCCESS) ++g_failures;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const char expected = i % step == 0 ? value_at(i) : rank == 0 ? '\0' : '?';
    if (data[i] == expected) continue;
    std::printf("rank %d: byte %zu of %zu is wrong\n", rank, i, data.size());
    ++g_failures;
    return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  broadcast((MPI_Count{1} << 31) + 17, MPI_CHAR, 1, rank);
  MPI_Datatype with_gap = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(MPI_CHAR, 0, 2, &with_gap);
  MPI_Type_commit(&with_gap);
  broadcast((MPI_Count{1} << 30) + 5, with_gap, 2, rank);
  MPI_Type_free(&with_gap);
  std::printf("rank %d: %d failures\n", rank, g_failures);
  MPI_Finalize();
  return g_failures != 0;
}

#else

int main() {
  std::printf("skipped: this MPI has no functions for large counts\n");
  return 0;
}

#endif
