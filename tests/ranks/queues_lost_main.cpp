// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Processes with two ranks each, in which something goes wrong. The first argument says what; every
// process that is left prints what it has been told.
//
//   oneself  a thread waits in one rank for the other one, for which it alone could act
//   start    the last process is killed before it makes its ranks
//   split    the last process is killed while others split a communicator
//   work     the last process is killed while others wait for an operation of its ranks
//   throw    an exception ends the runtime of the last process
//   leave    the last process ends its runtime in good order, and lives on
#include <sucl/sucl.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using ranks = std::vector<sucl::communicator>;

bool is_last(const sucl::runtime& rt) { return rt.rank() == rt.size() - 1; }

ranks start(sucl::runtime& rt) {
  const sycl::device device(sycl::cpu_selector_v);
  return rt.world({sycl::queue(device), sycl::queue(device)});
}

void meet(const ranks& mine) {
  sucl::each_rank(mine, [](sucl::communicator& c) { c.blocking().barrier(); });
}

// Until it fails.
void work(const ranks& mine) {
  std::vector<int> x(mine.size(), 1);
  for (;;) {
    sucl::group all;
    for (std::size_t i = 0; i < mine.size(); ++i)
      all.on(mine[i]).allreduce(&x[i], 1, sucl::op::max);
    all.run();
  }
}

void oneself(std::unique_ptr<sucl::runtime>& rt) {
  auto mine = start(*rt);
  int x = 1;
  mine.front().blocking().allreduce(&x, 1, sucl::op::sum);
}

void lose_at_start(std::unique_ptr<sucl::runtime>& rt) {
  if (is_last(*rt)) std::raise(SIGKILL);
  (void)start(*rt);
}

void lose_in_split(std::unique_ptr<sucl::runtime>& rt) {
  const auto mine = start(*rt);
  meet(mine);
  if (is_last(*rt)) std::raise(SIGKILL);
  (void)sucl::communicator::split(mine, {0, 1});
}

void lose_at_work(std::unique_ptr<sucl::runtime>& rt) {
  const auto mine = start(*rt);
  meet(mine);
  if (is_last(*rt)) std::raise(SIGKILL);
  work(mine);
}

void throw_at_work(std::unique_ptr<sucl::runtime>& rt) {
  const auto mine = start(*rt);
  meet(mine);
  if (is_last(*rt)) {
    sucl::runtime own = std::move(*rt);
    throw std::runtime_error("of the program");
  }
  work(mine);
}

void leave(std::unique_ptr<sucl::runtime>& rt) {
  const auto mine = start(*rt);
  meet(mine);
  if (!is_last(*rt)) work(mine);
  sucl::each_rank(mine, [](sucl::communicator& c) { c.wait(); });
  std::thread([&] { rt->shut_down(); }).detach();  // MPI waits for the others, who know by then
  std::this_thread::sleep_for(std::chrono::seconds(5));
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)(std::unique_ptr<sucl::runtime>&)> cases{
      {"oneself", oneself},   {"start", lose_at_start}, {"split", lose_in_split},
      {"work", lose_at_work}, {"throw", throw_at_work}, {"leave", leave}};
  const auto found = cases.find(argc > 1 ? argv[1] : "");
  if (found == cases.end()) return 2;
  auto rt = std::make_unique<sucl::runtime>();
  const int process = rt->rank();
  try {
    found->second(rt);
    std::printf("process %d: no error\n", process);
  } catch (const std::exception& e) {
    std::printf("process %d: %s\n", process, e.what());
  }
  std::fflush(stdout);
  std::_Exit(0);
}
