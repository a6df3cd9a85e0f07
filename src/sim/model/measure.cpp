// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sim/model/machine.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

namespace sucl::sim {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t large = std::size_t{64} << 20;  // bytes, beyond most caches
constexpr std::size_t small = std::size_t{256} << 10;
constexpr std::size_t few = 64;
constexpr double budget = 0.1;  // seconds a measurement

double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

// Bytes per second of work(bytes) in the best of as many turns as fit.
double rate(std::size_t bytes, const std::function<void()>& work) {
  double best = 0;
  const auto begin = clock::now();
  do {
    const auto start = clock::now();
    work();
    best = std::max(best, static_cast<double>(bytes) / std::max(seconds_since(start), 1e-9));
  } while (seconds_since(begin) < budget);
  return best;
}

struct vectors {
  explicit vectors(std::size_t bytes) : a(bytes / sizeof(float), 1), b(a.size(), 2) {}
  void copy() { std::memcpy(a.data(), b.data(), a.size() * sizeof(float)); }
  void reduce() {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  }
  std::vector<float> a, b;
};

// What a rank works for a copy or reduction of a few bytes, in the best of as many rounds as fit.
// Host memory has no queue: a rank makes them itself, by a call.
double call_seconds() {
  constexpr int calls = 1000;
  vectors v(few);
  const std::function<void()> kinds[] = {[&] { v.copy(); }, [&] { v.reduce(); }};
  const double rounds = rate(1, [&] {
    for (int i = 0; i < calls; ++i) kinds[i % 2]();
  });
  return 1 / (rounds * calls);
}

// What all threads together copy, and read and write in it.
double memory_bandwidth(int threads) {
  std::vector<double> rates(static_cast<std::size_t>(threads));
  std::vector<std::thread> all;
  for (double& r : rates)
    all.emplace_back([&r] {
      vectors v(large);
      r = rate(large, [&] { v.copy(); });
    });
  for (std::thread& t : all) t.join();
  double sum = 0;
  for (const double r : rates) sum += r;
  return 2 * sum;
}

// Half the time in which two threads answer each other through one word, in the best of some
// rounds: other users of the processors must not count.
double flag_latency() {
  constexpr int rounds = 200, turns = 20;
  std::atomic<int> word{0};
  std::thread other([&] {
    for (int i = 0; i < rounds * turns; ++i) {
      while (word.load(std::memory_order_acquire) != 2 * i + 1) std::this_thread::yield();
      word.store(2 * i + 2, std::memory_order_release);
    }
  });
  double best = 1;
  for (int round = 0; round < rounds; ++round) {
    const auto start = clock::now();
    for (int i = round * turns; i < (round + 1) * turns; ++i) {
      word.store(2 * i + 1, std::memory_order_release);
      while (word.load(std::memory_order_acquire) != 2 * i + 2) std::this_thread::yield();
    }
    best = std::min(best, seconds_since(start) / (2 * turns));
  }
  other.join();
  return best;
}

}  // namespace

machine measure_this_machine(int ranks) {
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  machine m;
  m.name = "this";
  m.levels.resize(1);
  level& node = m.levels[0];
  node.name = "memory";
  node.groups = ranks > 0 ? ranks : processors;
  m.summary = "one node of " + std::to_string(processors) + " processors, measured";
  vectors v(small);
  m.local.copy_rate = rate(small, [&] { v.copy(); });
  m.local.reduce_rate = rate(small, [&] { v.reduce(); });
  m.local.launch_overhead = call_seconds();
  m.local.bandwidth = memory_bandwidth(processors);
  m.local.shared_by = node.groups;
  transport ipc;
  ipc.name = "ipc";
  ipc.latency = flag_latency();
  ipc.bandwidth = m.local.copy_rate;
  transport mpi = ipc;  // through a copy on either side
  mpi.name = "mpi";
  mpi.bandwidth = ipc.bandwidth / 2;
  node.transports = {ipc, mpi};
  return m;
}

}  // namespace sucl::sim
