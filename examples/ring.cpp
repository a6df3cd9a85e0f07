// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// A token travels around a ring of ranks, each adding its number; then every rank exchanges with
// both neighbours at once, in a group.
//
//   sucl run -n 4 -- ring
#include <sucl/sucl.hpp>

#include <cstdio>

int main(int argc, char** argv) try {
  sucl::runtime runtime{argc, argv};
  sycl::queue queue;
  sucl::communicator comm = runtime.world(queue);
  const int rank = comm.rank(), size = comm.size();
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;

  int* token = sycl::malloc_shared<int>(1, queue);
  *token = 0;
  bool right = true;
  if (size > 1) {
    auto blocking = comm.blocking();
    if (rank == 0) {
      blocking.send(token, 1, next);
      blocking.recv(token, 1, previous);
      right = *token == size * (size - 1) / 2;
    } else {
      blocking.recv(token, 1, previous);
      *token += rank;
      blocking.send(token, 1, next);
    }
  }

  int* halo = sycl::malloc_shared<int>(4, queue);  // to left, to right, from left, from right
  halo[0] = 10 * rank;
  halo[1] = 10 * rank + 1;
  constexpr int leftward = 1, rightward = 2;
  sucl::group exchange{comm};
  exchange.send(halo + 0, 1, previous, leftward);
  exchange.send(halo + 1, 1, next, rightward);
  exchange.recv(halo + 2, 1, previous, rightward);
  exchange.recv(halo + 3, 1, next, leftward);
  exchange.submit().wait();
  right = right && halo[2] == 10 * previous + 1 && halo[3] == 10 * next;

  std::printf("rank %d: token %d, halo %d and %d: %s\n", rank, *token, halo[2], halo[3],
              right ? "right" : "WRONG");
  sycl::free(token, queue);
  sycl::free(halo, queue);
  return right ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
