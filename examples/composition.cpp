// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// A collective of one's own, composed of reductions and multicasts after HiCCL, compiled once and
// started many times: each rank's block is summed over all ranks, and every rank gets all sums.
//
//   sucl run -n 4 -- composition
//   SUCL_NODE_SIZE=2 sucl run -n 4 -- composition     as if on two nodes
#include <sucl/sucl.hpp>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) try {
  sucl::runtime runtime{argc, argv};
  sycl::queue queue{sycl::cpu_selector_v};  // plans work in memory that the host reaches
  sucl::communicator comm = runtime.world(queue);
  const int rank = comm.rank(), size = comm.size();
  constexpr std::size_t n = 1 << 16;  // elements of a block

  sucl::composition sums{size};
  for (int r = 0; r < size; ++r) {
    const std::size_t block = static_cast<std::size_t>(r) * n;
    sums.reduction(sums.send(block, n), sums.recv(block, n), sucl::all, r, sucl::op::sum);
  }
  sums.fence();
  for (int r = 0; r < size; ++r) {
    const std::size_t block = static_cast<std::size_t>(r) * n;
    std::vector<int> others;
    for (int o = 0; o < size; ++o)
      if (o != r) others.push_back(o);
    if (size > 1) sums.multicast(sums.recv(block, n), sums.recv(block, n), r, others);
  }

  // Data crosses between groups of two ranks once, in four parts that follow each other.
  sucl::compile_options along;
  along.hierarchy = {(size + 1) / 2, 2};
  along.pipeline = 4;
  sucl::compiled_plan plan = comm.compile<float>(sums, along);
  if (rank == 0) std::printf("%s\n", plan.explain().c_str());

  float* x = sycl::malloc_shared<float>(plan.send_size(), queue);
  float* y = sycl::malloc_shared<float>(plan.recv_size(), queue);
  bool right = true;
  for (int step = 0; step < 10; ++step) {
    sycl::event filled = queue.fill(x, static_cast<float>(rank + step), plan.send_size());
    plan.start(x, y, {filled}).wait();
    const float want = static_cast<float>(size * step + size * (size - 1) / 2);
    right = right && y[0] == want && y[plan.recv_size() - 1] == want;
  }
  std::printf("rank %d: %s\n", rank, right ? "right" : "WRONG");
  sycl::free(x, queue);
  sycl::free(y, queue);
  return right ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
