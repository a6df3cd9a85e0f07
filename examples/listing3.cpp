// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The program of the SuCL paper's Listing 3: fill a buffer on the device of rank 0, broadcast a
// part of it, and look at the result, with SYCL keeping the order through the buffer.
//
//   sucl run -n 2 -- listing3
#include <sucl/sucl.hpp>

#include <cstdio>

int main(int argc, char** argv) try {
  sucl::runtime runtime{argc, argv};  // starts MPI, reads --sucl-config
  sycl::queue queue;
  sucl::communicator comm = runtime.world(queue);

  constexpr std::size_t size = 1024, offset = 256, count = 512;
  constexpr int root = 0;
  sycl::buffer<int, 1> buffer{sycl::range<1>{size}};

  queue.submit([&](sycl::handler& h) {
    sycl::accessor acc{buffer, h, sycl::write_only, sycl::no_init};
    h.fill(acc, comm.rank() == root ? 42 : 0);
  });

  comm.broadcast(buffer, sycl::id<1>{offset}, sycl::range<1>{count}, root);

  sycl::host_accessor result{buffer, sycl::read_only};
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const bool sent = i >= offset && i < offset + count;
    wrong += result[i] != (comm.rank() == root || sent ? 42 : 0);
  }
  std::printf("rank %d of %d: %zu elements arrived, %zu wrong\n", comm.rank(), comm.size(), count,
              wrong);
  return wrong == 0 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
