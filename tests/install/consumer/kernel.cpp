// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// A program with a kernel of its own, whose results are reduced.
#include "sample.hpp"

#include <sucl/kernels.hpp>
#include <sucl/sucl.hpp>

#include <cstdio>

int main(int argc, char** argv) try {
  sucl::runtime runtime{argc, argv};
  sycl::queue queue;
  sucl::communicator comm = runtime.world(queue);
  constexpr std::size_t n = 1000;
  double* values = sycl::malloc_shared<double>(n, queue);
  const auto scaled = sucl::kernels::launch(queue, sucl::kernels::items(n), {},
                                            scale{comm.rank() + 1.0, n}, values);
  comm.allreduce(values, n, sucl::op::sum, {scaled}).wait();
  const double factors = comm.size() * (comm.size() + 1) / 2;
  bool right = true;
  for (std::size_t i = 0; i < n; ++i)
    right = right && values[i] == factors * static_cast<double>(i);
  std::printf("rank %d: %s\n", comm.rank(), right ? "right" : "WRONG");
  sycl::free(values, queue);
  return right ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
