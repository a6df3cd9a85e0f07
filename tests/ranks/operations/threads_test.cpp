// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The threads that SuCL starts in a program.
#include "ranks/fixture.hpp"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace sucl::testing {
namespace {

struct thread_status {
  std::string name;
  std::uint64_t blocked = 0;  // a bit for each signal, the first for 1

  bool blocks(int number) const { return (blocked >> (number - 1) & 1) != 0; }
};

std::vector<thread_status> own_threads() {
  std::vector<thread_status> found;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    thread_status s;
    std::ifstream status(thread.path() / "status");
    for (std::string key; status >> key;) {
      if (key == "Name:") status >> s.name;
      if (key == "SigBlk:") status >> std::hex >> s.blocked >> std::dec;
    }
    if (s.name.rfind("sucl-", 0) == 0) found.push_back(s);
  }
  return found;
}

// A program that waits in sigwait() has blocked the signal in its own threads alone. Taken by any
// other thread it would end the process.
TEST(threads, take_no_signals_of_the_program) {
  auto& j = fixture();
  std::vector<int> data(1000, 1);
  j.world.allreduce(data.data(), data.size(), op::sum).wait();
  auto threads = own_threads();
  if (j.world.size() == 1 && threads.empty())
    GTEST_SKIP() << "one rank may be done without any thread of SuCL's";
  // A thread has its name a moment after it has begun.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (threads.empty() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    threads = own_threads();
  }
  EXPECT_FALSE(threads.empty());
  for (const auto& t : threads) {
    for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGWINCH})
      EXPECT_TRUE(t.blocks(number)) << t.name << ", signal " << number;
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
      EXPECT_FALSE(t.blocks(number)) << t.name << ", signal " << number;
  }
}

}  // namespace
}  // namespace sucl::testing
