// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// All forms for a long time, with communicators that come and go: nothing that a process holds may
// grow once it has been through everything.
//
//   soak [--seed N] [--seconds N | --steps N] [--every N] [--cycle N] [--without NAME,...]
//        [--only NAME,...]
//
// With --steps it looks after the same steps however fast the machine is.
// --every: steps between two lives of communicators; 0: none, 1: nothing else. --cycle: steps after
// which the same ones come again, so that what is kept for each call is soon complete.
//
// Prints a line of JSON. Exit status: 0, or 1 if something has grown or a result was wrong.
#include "holding.hpp"
#include "torture/random/stage.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace {

using namespace sucl::torture;
using clock_type = std::chrono::steady_clock;
using std::uint64_t;

struct options {
  uint64_t seed = 1, seconds = 20, steps = 0, every = 32, cycle = 4000;
  filter wanted;
};

options parse(int argc, char** argv) {
  options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view word = argv[i];
    if (word == "--seed") o.seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (word == "--every") o.every = std::strtoull(argv[i + 1], nullptr, 10);
    if (word == "--without") o.wanted.without = names(argv[i + 1]);
    if (word == "--only") o.wanted.only = names(argv[i + 1]);
    if (word == "--cycle") o.cycle = std::strtoull(argv[i + 1], nullptr, 10);
    if (word == "--seconds") o.seconds = std::strtoull(argv[i + 1], nullptr, 10);
    if (word == "--steps") o.steps = std::strtoull(argv[i + 1], nullptr, 10);
  }
  return o;
}

// Communicators of each sort, with everything that hangs on one, from begin to end.
void live_once(sucl::runtime& rt, sycl::queue& queue, uint64_t round) {
  auto world = round % 2 == 0 ? rt.world(queue) : rt.world();
  auto copy = world.dup();
  auto half = world.split(rt.rank() % 2, -rt.rank());
  const std::size_t n = 1 + round % 1000;
  std::vector<double> in(n, 1), out(n);
  for (auto* comm : {&world, &copy, &half}) {
    auto* memory = comm->allocate<double>(n + static_cast<std::size_t>(rt.rank()));
    comm->blocking().allreduce(in.data(), memory, n, sucl::op::sum);
    auto kept = comm->persistent().allreduce(in.data(), out.data(), n, sucl::op::max);
    kept.run();
    comm->allreduce(in.data(), out.data(), n, sucl::op::sum).wait();
    if (round % 3 == 0) comm->deallocate(memory);  // else with its communicator
  }
  if (round % 16 != 0) return;
  sucl::composition c(copy.size());
  for (int r = 0; r < copy.size(); ++r) {
    const auto at = static_cast<std::size_t>(r) * n;
    c.multicast(c.send(0, n), c.recv(at, n), r, sucl::all);
  }
  std::vector<double> gathered(n * static_cast<std::size_t>(copy.size()));
  copy.compile<double>(c).run(in.data(), gathered.data());
}

std::uint64_t bytes_of_shared_memory() {
  std::uint64_t total = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    const auto size = entry.file_size(ignored);
    if (!ignored) total += size;
  }
  return total;
}

enum counter { c_operations, c_wrong, c_differing, c_stop, c_grown, c_communicators };

// How much of everything is done, from 0 to 1.
class progress {
 public:
  explicit progress(const options& o) : m_options(o) {}
  double after(uint64_t steps) const {
    if (m_options.steps > 0)
      return static_cast<double>(steps) / static_cast<double>(m_options.steps);
    const std::chrono::duration<double> took = clock_type::now() - m_begun;
    return took.count() / static_cast<double>(m_options.seconds);
  }
  /// The first fifth or minute: until then everything has been through once.
  double warm() const {
    return m_options.steps > 0 ? 0.2 : std::min(0.2, 60 / static_cast<double>(m_options.seconds));
  }

 private:
  const options& m_options;
  clock_type::time_point m_begun = clock_type::now();
};

// Returns the samples behind the first fifth or minute.
std::vector<holding> run_steps(const options& o, sucl::runtime& rt, stage& all) {
  const progress done(o);
  sycl::queue queue{sycl::cpu_selector_v};
  std::vector<holding> samples;
  double next = done.warm();
  for (uint64_t i = 0;; ++i) {
    if (o.every != 1 && o.wanted.allows(o.seed, i % o.cycle, rt.size()))
      all.run(i, draw_step(o.seed, i % o.cycle, rt.rank(), rt.size()));
    if (o.every != 0 && i % o.every == 0) {
      live_once(rt, queue, i / o.every);
      all.board.add(c_communicators, 3);
    }
    if (i % 64 != 63) continue;
    all.wait();  // or DPC++ keeps notes of host tasks: see docs/reference/sycl-implementations.md
    queue.wait();
    const double now = done.after(i + 1);
    if (now > next) {
      samples.push_back(holding::now());
      next = now + (1 - done.warm()) / 200;
    }
    // Rank 0's clock decides for all.
    if (rt.rank() == 0 && now >= 1) all.board.add(c_stop, 1);
    all.compare();
    if (all.board.sum(c_stop) > 0) return samples;
  }
}

int run(const options& o, sucl::runtime& rt) {
  const auto shared_before = bytes_of_shared_memory();
  stage all(rt, o.seed, false);
  const auto samples = run_steps(o, rt, all);
  const std::string grown = growth(samples);
  if (!grown.empty()) {
    std::fprintf(stderr, "rank %d has grown: %s\n", rt.rank(), grown.c_str());
    for (std::size_t i = 0; i < samples.size(); i += std::max<std::size_t>(1, samples.size() / 10))
      std::fprintf(stderr, "  %s\n", samples[i].text().c_str());
    all.board.add(c_grown, 1);
  }
  all.board.add(c_operations, all.found.operations);
  all.board.add(c_wrong, all.found.wrong);
  all.board.barrier();
  const auto sum = [&](int c) { return static_cast<unsigned long long>(all.board.sum(c)); };
  const bool good = sum(c_wrong) + sum(c_differing) + sum(c_grown) == 0;
  if (rt.rank() == 0) {
    std::printf(
        "{\"seed\": %llu, \"ranks\": %d, \"seconds\": %llu, \"operations\": %llu, "
        "\"communicators\": %llu, \"samples\": %zu, \"wrong\": %llu, \"differing\": %llu, "
        "\"grown\": %llu, \"private_KiB\": [%lld, %lld], \"shared_memory_MiB\": [%llu, %llu]}\n",
        static_cast<unsigned long long>(o.seed), rt.size(),
        static_cast<unsigned long long>(o.seconds),
        static_cast<unsigned long long>(all.found.operations), sum(c_communicators) / rt.size(),
        samples.size(), sum(c_wrong), sum(c_differing), sum(c_grown),
        samples.empty() ? 0LL : static_cast<long long>(samples.front().resident / 1024),
        samples.empty() ? 0LL : static_cast<long long>(samples.back().resident / 1024),
        static_cast<unsigned long long>(shared_before >> 20),
        static_cast<unsigned long long>(bytes_of_shared_memory() >> 20));
    std::fflush(stdout);
  }
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    sucl::runtime rt{argc, argv};
    return run(parse(argc, argv), rt);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "failed: %s\n", e.what());
    return 3;
  }
}
