// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// One process with a rank for each of its devices, all of them served by one thread. Where there is
// one device there are two queues of it. Runs alone, or in any number of processes.
//
//   several_devices
#include <sucl/sucl.hpp>

#include <cstdio>
#include <vector>

namespace {

std::vector<sycl::queue> queues_of_this_process() {
  const sycl::device first{sycl::default_selector_v};
  std::vector<sycl::queue> queues;
  for (const auto& device : first.get_platform().get_devices()) queues.emplace_back(device);
  if (queues.size() == 1) queues.emplace_back(first);
  return queues;
}

}  // namespace

int main(int argc, char** argv) try {
  constexpr std::size_t n = 1000;
  sucl::runtime runtime{argc, argv};
  std::vector<sycl::queue> queues = queues_of_this_process();
  std::vector<sucl::communicator> ranks = runtime.world(queues);

  std::vector<float*> x;
  sucl::group all;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    x.push_back(sycl::malloc_device<float>(n, queues[i]));
    const sycl::event filled = queues[i].fill(x[i], static_cast<float>(ranks[i].rank() + 1), n);
    all.on(ranks[i]).allreduce(x[i], n, sucl::op::sum, {filled});
  }
  all.run();

  bool right = true;
  const int size = ranks.front().size();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    float sum = 0;
    queues[i].memcpy(&sum, x[i] + n - 1, sizeof sum).wait();
    const bool mine = sum == static_cast<float>(size * (size + 1) / 2);
    std::printf("rank %d of %d: sum %.0f: %s\n", ranks[i].rank(), size, sum,
                mine ? "right" : "WRONG");
    sycl::free(x[i], queues[i]);
    right = right && mine;
  }

  // What is collective and blocks, of all ranks of this process at once.
  const std::vector<sucl::communicator> copies = sucl::communicator::dup(ranks);
  sucl::each_rank(copies, [](sucl::communicator& c) { c.blocking().barrier(); });
  return right ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
