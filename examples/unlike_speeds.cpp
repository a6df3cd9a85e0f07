// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Work shared among ranks of unlike speed, and moved while the program runs. A wave travels around
// a ring of points; rank 0 computes every step four times, as if its device were slower.
//
//   sucl run -n 3 -- unlike_speeds
#include <sucl/sucl.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

/// One step: every point becomes what its left neighbour was.
void step(std::vector<double>& mine, double from_the_left, int times) {
  for (int n = 0; n < times; ++n) {
    volatile double cost = 0;  // the work of a program that does more than this
    for (double v : mine) cost = cost + v * v;
  }
  std::rotate(mine.begin(), mine.end() - 1, mine.end());
  mine.front() = from_the_left;
}

}  // namespace

int main(int argc, char** argv) try {
  sucl::runtime runtime{argc, argv};
  sucl::communicator comm = runtime.world();
  const int rank = comm.rank(), size = comm.size();
  constexpr std::size_t points = 300000;
  constexpr int steps = 60;

  sucl::balancer balance{sucl::partition(points, size)};
  std::vector<double> mine(balance.current().count(rank));
  for (std::size_t i = 0; i < mine.size(); ++i)
    mine[i] = static_cast<double>(balance.current().begin(rank) + i);

  int moves = 0;
  for (int n = 0; n < steps; ++n) {
    double last = mine.back(), from_the_left = 0;
    comm.blocking().sendrecv(&last, 1, (rank + 1) % size, &from_the_left, 1,
                             (rank + size - 1) % size);

    const auto began = clock_type::now();
    step(mine, from_the_left, rank == 0 ? 4 : 1);
    const double seconds = std::chrono::duration<double>(clock_type::now() - began).count();

    const sucl::partition before = balance.current();
    if (!balance.update(comm, seconds)) continue;
    const auto moving = clock_type::now();
    const sucl::migration path{before, balance.current(), rank};
    std::vector<double> next(balance.current().count(rank));
    comm.blocking().alltoallv(mine.data(), path.send_counts, path.send_displs, next.data(),
                              path.recv_counts, path.recv_displs);
    mine.swap(next);
    balance.note_move(comm, std::chrono::duration<double>(clock_type::now() - moving).count());
    ++moves;
  }

  bool right = true;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const std::size_t point = balance.current().begin(rank) + i;
    right = right && mine[i] == static_cast<double>((point + points - steps) % points);
  }
  std::printf("rank %d has %zu points, after %d moves: %s\n", rank, mine.size(), moves,
              right ? "right" : "WRONG");
  return right ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
