// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// An allreduce on USM between two commands, ordered by events, while the host is free; then the
// blocking form, which is faster where one waits anyway.
//
//   sucl run -n 2 -- usm_allreduce
#include <sucl/sucl.hpp>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) try {
  sucl::runtime runtime{argc, argv};
  sycl::queue queue;
  sucl::communicator comm = runtime.world(queue);
  const auto ranks = static_cast<float>(comm.size());

  constexpr std::size_t n = 1 << 16;
  float* gradient = sycl::malloc_device<float>(n, queue);
  std::vector<float> host(n);

  sycl::event produced = queue.fill(gradient, static_cast<float>(comm.rank() + 1), n);
  sycl::event averaged = comm.allreduce(gradient, n, sucl::op::avg, {produced});
  // The host could prepare the next step here.
  queue.memcpy(host.data(), gradient, n * sizeof(float), averaged).wait();
  const bool first = host.front() == (ranks + 1) / 2 && host.back() == host.front();

  comm.blocking().allreduce(gradient, n, sucl::op::sum);
  queue.memcpy(host.data(), gradient, n * sizeof(float)).wait();
  const bool second = host.front() == ranks * (ranks + 1) / 2 && host.back() == host.front();

  if (comm.rank() == 0) std::printf("%s", comm.explain(sucl::kind::allreduce, n * 4).c_str());
  std::printf("rank %d: average %s, sum %s\n", comm.rank(), first ? "right" : "WRONG",
              second ? "right" : "WRONG");
  sycl::free(gradient, queue);
  return first && second ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
