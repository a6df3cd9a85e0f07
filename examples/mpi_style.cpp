// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// For programs that come from MPI: the same names and argument order, on a queue and its memory.
//
//   sucl run -n 2 -- mpi_style
#include <sucl/mpi.hpp>
#include <sucl/sucl.hpp>

#include <cstdio>

int main(int argc, char** argv) try {
  sucl::runtime runtime{argc, argv};
  sycl::queue q{sycl::property::queue::in_order{}};
  sucl::communicator comm = runtime.world(q);
  const int rank = comm.rank(), size = comm.size();

  constexpr std::size_t n = 1000;
  double* x = sycl::malloc_shared<double>(n, q);
  double* y = sycl::malloc_shared<double>(n, q);

  // The queue is in order: each call follows the one before, and one wait ends them all.
  q.fill(x, static_cast<double>(rank), n);
  sucl::mpi::allreduce(q, x, y, n, sucl::op::max, comm);
  sucl::mpi::bcast(q, x, n, size - 1, comm);
  sucl::mpi::allreduce(q, sucl::mpi::in_place, x, n, sucl::op::sum, comm);
  q.wait();

  bool right = y[0] == size - 1 && x[n - 1] == static_cast<double>(size - 1) * size;

  sycl::buffer<int, 1> mine{sycl::range<1>{4}},
      all{sycl::range<1>{4 * static_cast<std::size_t>(size)}};
  {
    sycl::host_accessor m{mine};
    for (int i = 0; i < 4; ++i) m[i] = 4 * rank + i;
  }
  sucl::mpi::allgather(q, mine, 4, all, 4, comm);
  sycl::host_accessor a{all};
  for (int i = 0; i < 4 * size; ++i) right = right && a[i] == i;

  std::printf("rank %d: %s\n", rank, right ? "right" : "WRONG");
  sycl::free(x, q);
  sycl::free(y, q);
  return right ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
