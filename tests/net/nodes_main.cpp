// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Two nodes with a slow link between them: they are recognised, and an allreduce along them beats
// one that knows no nodes, by what the link has to carry. See two_nodes.sh.
#include <sucl/sucl.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace {

int g_failures = 0;

void expect(bool good, const std::string& what) {
  if (good) return;
  std::printf("not as expected: %s\n", what.c_str());
  ++g_failures;
}

// Blocks are summed on their owners, which then tell everybody, whatever the nodes are.
sucl::composition flat_allreduce(int size, std::size_t n) {
  sucl::composition c{size};
  for (int r = 0; r < size; ++r) {
    const std::size_t at = static_cast<std::size_t>(r) * n;
    c.reduction(c.send(at, n), c.recv(at, n), sucl::all, r, sucl::op::sum);
  }
  c.fence();
  for (int r = 0; r < size; ++r) {
    const std::size_t at = static_cast<std::size_t>(r) * n;
    std::vector<int> others;
    for (int o = 0; o < size; ++o)
      if (o != r) others.push_back(o);
    c.multicast(c.recv(at, n), c.recv(at, n), r, others);
  }
  return c;
}

struct trial {
  sucl::communicator comm;
  std::vector<float> in, out;

  // The median of some rounds, in ms; every result is checked.
  double time(const char* name, std::size_t count, const std::function<void()>& operation) {
    std::vector<double> rounds;
    const int size = comm.size();
    for (int round = 0; round < 5; ++round) {
      std::fill(in.begin(), in.end(), static_cast<float>(comm.rank() + round));
      std::fill(out.begin(), out.end(), -1.f);
      comm.blocking().barrier();
      const auto start = std::chrono::steady_clock::now();
      operation();
      rounds.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
              .count());
      const auto want = static_cast<float>(size * round + size * (size - 1) / 2);
      expect(std::all_of(out.begin(), out.begin() + static_cast<long>(count),
                         [&](float x) { return x == want; }),
             std::string(name) + " is wrong");
    }
    std::sort(rounds.begin(), rounds.end());
    double median = rounds[rounds.size() / 2];
    comm.blocking().allreduce(&median, 1, sucl::op::max);
    if (comm.rank() == 0) std::printf("%-40s %8.2f ms\n", name, median);
    return median;
  }
};

}  // namespace

int main(int argc, char** argv) try {
  sucl::runtime runtime{argc, argv};
  sucl::communicator comm = runtime.world();
  const int size = comm.size();
  const auto& members = comm.members();
  for (const auto& m : members) expect(m.node == m.rank / (size / 2), "the nodes are others");
  expect(members.front().host != members.back().host, "both nodes have one name");

  const std::size_t n = 40'000, count = n * static_cast<std::size_t>(size);
  const auto why = comm.explain(sucl::kind::allreduce, count * sizeof(float));
  expect(why.find("carried by plan") != std::string::npos, why);
  if (comm.rank() == 0) std::printf("%s", why.c_str());
  trial t{comm, std::vector<float>(count), std::vector<float>(count)};
  auto flat = comm.compile<float>(flat_allreduce(size, n));
  auto along =
      comm.compile<float>(flat_allreduce(size, n), {{2, size / 2}, {"mpi", "ipc"}, 1, 1, 2});
  const double two_level = t.time("allreduce, nodes combine first", count, [&] {
    comm.blocking().allreduce(t.in.data(), t.out.data(), count, sucl::op::sum);
  });
  const double blind = t.time("composed without a hierarchy", count,
                              [&] { flat.run<float>(t.in.data(), t.out.data()); });
  const double composed = t.time("the same along the nodes", count,
                                 [&] { along.run<float>(t.in.data(), t.out.data()); });
  // tests/net/CMakeLists.txt leaves this one size to MPI.
  const double library = t.time("allreduce of the MPI library", count - 1, [&] {
    comm.blocking().allreduce(t.in.data(), t.out.data(), count - 1, sucl::op::sum);
  });
  if (comm.rank() == 0)
    std::printf(
        "two levels are %.2f times as fast as none, composed %.2f times, and %.2f times as "
        "fast as MPI's\n",
        blind / two_level, blind / composed, library / two_level);
  // The link carries the vector once in each direction, and without the hierarchy three times.
  expect(two_level < 0.7 * blind, "two levels do not beat none");
  expect(composed < 0.8 * blind, "a composition along the nodes does not beat one without");
  comm.blocking().allreduce(&g_failures, 1, sucl::op::sum);
  if (comm.rank() == 0) std::printf("%d failures\n", g_failures);
  return g_failures > 0 ? 1 : 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
