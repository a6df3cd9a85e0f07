// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Collectives of one thread while malloc() moves the end of the heap in another, in a process that
// uses a device. To be run interposed.
//
//   heap CALLS
#include "device_memory.hpp"

#include <malloc.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace {

std::atomic<int> g_failures{0};

// All threads share the heap whose end moves, whatever the size of a block.
void use_one_heap() {
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 0);
  mallopt(M_TOP_PAD, 0);
}

void move_the_end(const std::atomic<bool>& over) {
  for (int i = 0; !over; ++i) {
    const std::vector<char> block(std::size_t(100000 + i % 50 * 4096), char(i));
    const auto other = [&](char byte) { return byte != char(i); };
    if (std::any_of(block.begin(), block.end(), other)) ++g_failures;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int calls = argc > 1 ? std::atoi(argv[1]) : 1000;
  use_one_heap();
  int provided = 0, rank = 0, size = 1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  fuzz::open_device(rank);
  std::atomic<bool> over{false};
  std::thread other([&] { move_the_end(over); });
  const auto data = std::make_unique<int[]>(16);
  for (int i = 0; i < calls; ++i) {
    data[0] = rank + i;
    MPI_Allreduce(MPI_IN_PLACE, data.get(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (data[0] != size * (size - 1) / 2 + size * i) ++g_failures;
  }
  over = true;
  other.join();
  std::printf("rank %d: %d failures\n", rank, g_failures.load());
  std::fflush(stdout);
  MPI_Finalize();
  return g_failures == 0 ? 0 : 1;
}
