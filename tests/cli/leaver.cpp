// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// leaver HOW [READY]: a job whose rank 0 leaves in the middle: by "exit", "throw", "abort" or
// "segv"; or that "wait"s for a signal from outside, with a file READY.<rank> of each rank that
// does; or that ends as it should ("return").
#include <sucl/sucl.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "return";
  sucl::runtime runtime{argc, argv};
  sucl::communicator world = runtime.world();
  int* const memory = world.allocate<int>(1 << 20);
  world.allreduce(memory, 1 << 20, sucl::op::sum).wait();
  if (how == "wait") {
    if (argc > 2) std::ofstream(std::string(argv[2]) + "." + std::to_string(world.rank()));
    std::this_thread::sleep_for(std::chrono::seconds(60));
  }
  if (world.rank() == 0 && how == "exit") std::exit(3);
  if (world.rank() == 0 && how == "throw") throw std::runtime_error("leaving");
  if (world.rank() == 0 && how == "abort") std::abort();
  if (world.rank() == 0 && how == "segv") std::raise(SIGSEGV);
  world.barrier().wait();
}
