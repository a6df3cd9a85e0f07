// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Two nodes with a slow link between them: they are recognised, and an allreduce along them sends
// less over it than one that knows no nodes. See two_nodes.sh.
#include <sucl/sucl.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace {

int g_failures = 0;

void expect(bool good, const std::string& what) {
  if (good) return;
  std::printf("not as expected: %s\n", what.c_str());
  ++g_failures;
}

// Blocks are summed on their owners, which then tell every rank, whatever the nodes are.
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

// Of both directions, since the nodes were made, at this node's end.
double bytes_on_the_link() {
  std::ifstream file("/proc/self/net/dev");
  for (std::string line; std::getline(file, line);) {
    const auto name = line.find("sucl0:");
    if (name == std::string::npos) continue;
    std::istringstream fields(line.substr(name + 6));
    double received = 0, sent = 0;
    fields >> received;
    for (int i = 0; i < 8; ++i) fields >> sent;  // after eight of what is received
    return received + sent;
  }
  expect(false, "there is no link");
  return 0;
}

struct trial {
  sucl::communicator comm;
  std::vector<float> in, out;

  // What crosses the link in one call, as a multiple of the vector; every result is checked.
  double crossed(const char* name, std::size_t count, const std::function<void()>& operation) {
    constexpr int rounds = 3;
    const int size = comm.size();
    double before = 0;
    for (int round = -1; round < rounds; ++round) {  // the first one makes connections
      if (round == 0) before = bytes_on_the_link();
      std::fill(in.begin(), in.end(), static_cast<float>(comm.rank() + round));
      std::fill(out.begin(), out.end(), -1.f);
      comm.blocking().barrier();
      operation();
      const auto want = static_cast<float>(size * round + size * (size - 1) / 2);
      expect(std::all_of(out.begin(), out.begin() + static_cast<long>(count),
                         [&](float x) { return x == want; }),
             std::string(name) + " is wrong");
      comm.blocking().barrier();
    }
    double each = (bytes_on_the_link() - before) / rounds / static_cast<double>(count) / 4;
    comm.blocking().broadcast(&each, 1, 0);
    if (comm.rank() == 0) std::printf("%-40s %5.2f vectors\n", name, each);
    return each;
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
  expect(why.find("executed by plan") != std::string::npos, why);
  if (comm.rank() == 0) std::printf("%s", why.c_str());
  trial t{comm, std::vector<float>(count), std::vector<float>(count)};
  auto flat = comm.compile<float>(flat_allreduce(size, n));
  auto along =
      comm.compile<float>(flat_allreduce(size, n), {{2, size / 2}, {"mpi", "ipc"}, 1, 1, 2});
  const double two_level = t.crossed("allreduce, nodes combine first", count, [&] {
    comm.blocking().allreduce(t.in.data(), t.out.data(), count, sucl::op::sum);
  });
  const double blind = t.crossed("composed without a hierarchy", count,
                                 [&] { flat.run<float>(t.in.data(), t.out.data()); });
  const double composed = t.crossed("the same along the nodes", count,
                                    [&] { along.run<float>(t.in.data(), t.out.data()); });
  // Once in each direction, and without the hierarchy three times; a little more for headers.
  expect(two_level < 2.5, "two levels send more than once");
  expect(blind > 5.5, "a composition without a hierarchy sends as little");
  expect(composed < 2.5, "a composition along the nodes sends more than once");
  comm.blocking().allreduce(&g_failures, 1, sucl::op::sum);
  if (comm.rank() == 0) std::printf("%d failures\n", g_failures);
  return g_failures > 0 ? 1 : 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
