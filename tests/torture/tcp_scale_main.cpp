// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// tcp_scale RANKS: the start of a job without MPI with that many ranks, all of them in this process
// and each with sockets of its own, then an exchange of all. Prints how long it took and what a
// rank keeps. Exit status 77: the system does not allow so many descriptors.
#include "support/jobs/tcp_job.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace {

using namespace std::chrono_literals;
using sucl::testing::tcp_job;

// Each rank listens, and has one connection to its parent, of which both ends are here; while it
// starts, one to the store.
bool allow_descriptors(int ranks) {
  constexpr rlim_t others = 6000;
  const auto wanted = static_cast<rlim_t>(ranks) * 3 + others;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur >= wanted) return true;
  files.rlim_cur = wanted;
  files.rlim_max = std::max(files.rlim_max, wanted);
  return setrlimit(RLIMIT_NOFILE, &files) == 0;
}

long resident_kib() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("VmRSS:", 0) == 0) return std::atol(line.c_str() + 6);
  return 0;
}

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

// Threads with small stacks: thousands at once.
void each(int ranks, void* (*body)(void*), void* context) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 256 << 10);
  std::vector<pthread_t> threads(static_cast<std::size_t>(ranks));
  std::vector<std::pair<void*, int>> arguments;
  for (int r = 0; r < ranks; ++r) arguments.emplace_back(context, r);
  for (int r = 0; r < ranks; ++r)
    if (pthread_create(&threads[static_cast<std::size_t>(r)], &small, body,
                       &arguments[static_cast<std::size_t>(r)]) != 0) {
      std::printf("the system gives no thread for rank %d\n", r);
      std::exit(77);
    }
  for (auto& t : threads) pthread_join(t, nullptr);
  pthread_attr_destroy(&small);
}

struct everything {
  tcp_job job{2};
  std::vector<sucl::testing::outcome> all;
  std::atomic<int> wrong{0};
  int ranks = 0;
};

void* start_one(void* argument) {
  auto& [context, rank] = *static_cast<std::pair<void*, int>*>(argument);
  auto& e = *static_cast<everything*>(context);
  e.all[static_cast<std::size_t>(rank)] = e.job.start({rank, e.ranks, "", 300s});
  return nullptr;
}

void* exchange_one(void* argument) {
  auto& [context, rank] = *static_cast<std::pair<void*, int>*>(argument);
  auto& e = *static_cast<everything*>(context);
  auto& n = *e.all[static_cast<std::size_t>(rank)].process;
  sucl_group* world = n.world();
  std::vector<int> got(static_cast<std::size_t>(e.ranks), -1);
  n.finish(*world, n.start_exchange(*world, &rank, got.data(), sizeof rank));
  for (int r = 0; r < e.ranks; ++r) e.wrong += got[static_cast<std::size_t>(r)] != r;
  n.free(world);
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  everything e;
  e.ranks = argc > 1 ? std::atoi(argv[1]) : 64;
  if (e.ranks < 1 || !allow_descriptors(e.ranks)) {
    std::printf("tcp_scale: not enough descriptors for %d ranks: raise ulimit -n\n", e.ranks);
    return 77;
  }
  e.all.resize(static_cast<std::size_t>(e.ranks));
  const long before = resident_kib();
  const auto begin = std::chrono::steady_clock::now();
  each(e.ranks, start_one, &e);
  const auto started = std::chrono::steady_clock::now();
  std::size_t most = 0, sum = 0;
  for (const auto& o : e.all) {
    if (!o.process) {
      std::printf("tcp_scale: %s\n", o.why.text.c_str());
      std::fflush(stdout);
      std::_Exit(1);
    }
    most = std::max(most, o.process->connections());
    sum += o.process->connections();
  }
  const long after = resident_kib();
  each(e.ranks, exchange_one, &e);
  const auto end = std::chrono::steady_clock::now();
  std::printf(
      "tcp_scale: %d ranks in one process: started in %.2f s, a group and an exchange of all in "
      "%.2f s, %.1f KiB a rank, at most %zu connections of one, %zu in all, %d wrong\n",
      e.ranks, seconds(started - begin), seconds(end - started),
      static_cast<double>(after - before) / e.ranks, most, sum / 2, e.wrong.load());
  std::fflush(stdout);
  // The tree has two ends for each rank but the first, and no rank has more than nine neighbours.
  const bool right = e.wrong == 0 && most <= 9 && sum == 2 * static_cast<std::size_t>(e.ranks - 1);
  std::_Exit(right ? 0 : 1);
}
