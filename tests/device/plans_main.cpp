// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Compiled plans on device memory, on a GPU if there is one, checked against a plain loop. Prints
// what a start takes back to back, beside the collective of the same meaning. No kernels, so that
// no SYCL compiler is needed.
#include "ranks/fixture.hpp"
#include "support/own_device.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sucl::testing {
namespace {

using std::size_t;

struct plans : ::testing::Test {
  rank_fixture& j = fixture();
  const int rank = j.world.rank();
  const int size = j.world.size();
  size_t ranks() const { return static_cast<size_t>(size); }

  using memory = std::shared_ptr<int>;
  memory on_device(size_t count) {
    auto& q = j.in_order;
    return {sycl::malloc_device<int>(count, q), [q](int* x) { sycl::free(x, q); }};
  }
  static int value(int r, int round, size_t i) {
    return (r + 1) * 1000003 + round * 7919 + static_cast<int>(i % 8191) * (r + 3);
  }
  int sum(int round, size_t i) const {
    int all = 0;
    for (int r = 0; r < size; ++r) all += value(r, round, i);
    return all;
  }

  // What each rank sends, what it shall have received, and the collective that does the same.
  struct problem {
    const char* name;
    composition what;
    size_t sent, received;
    std::function<int(int round, size_t i)> expected;
    std::function<void(communicator, const int*, int*)> plain;
  };
  problem broadcast(size_t n) const {
    composition c{size};
    const int root = size - 1;
    c.multicast(c.send(0, n), c.recv(0, n), root, all);
    return {"broadcast",
            c,
            n,
            n,
            [=](int round, size_t i) { return value(root, round, i); },
            [=, this](communicator comm, const int* x, int* y) {
              comm.broadcast(rank == root ? const_cast<int*>(x) : y, n, root);
            }};
  }
  problem allgather(size_t n) const {
    composition c{size};
    for (int r = 0; r < size; ++r)
      c.multicast(c.send(0, n), c.recv(static_cast<size_t>(r) * n, n), r, all);
    return {"allgather",
            c,
            n,
            n * ranks(),
            [=](int round, size_t i) { return value(static_cast<int>(i / n), round, i % n); },
            [=](communicator comm, const int* x, int* y) { comm.allgather(x, y, n); }};
  }
  problem allreduce_at_once(size_t n) const {
    composition c{size};
    for (int r = 0; r < size; ++r) c.reduction(c.send(0, n), c.recv(0, n), all, r, op::sum);
    return allreduce("allreduce, 1 step", c, n);
  }
  problem allreduce_in_two(size_t block) const {
    composition c{size};
    for (int r = 0; r < size; ++r) {
      const auto at = static_cast<size_t>(r) * block;
      c.reduction(c.send(at, block), c.recv(at, block), all, r, op::sum);
    }
    c.fence();
    for (int r = 0; r < size; ++r) {
      std::vector<int> others;
      for (int o = 0; o < size; ++o)
        if (o != r) others.push_back(o);
      const auto at = static_cast<size_t>(r) * block;
      c.multicast(c.recv(at, block), c.recv(at, block), r, others);
    }
    return allreduce("allreduce, 2 steps", c, block * ranks());
  }
  problem allreduce(const char* name, const composition& c, size_t n) const {
    return {name,
            c,
            n,
            n,
            [this](int round, size_t i) { return sum(round, i); },
            [=](communicator comm, const int* x, int* y) { comm.allreduce(x, y, n, op::sum); }};
  }

  void expect_right(const problem& p, compiled_plan& plan, communicator comm) {
    auto& q = j.in_order;
    const auto from = on_device(p.sent), to = on_device(p.received);
    std::vector<int> host(p.sent), result(p.received);
    for (int round = 0; round < 3; ++round) {
      for (size_t i = 0; i < p.sent; ++i) host[i] = value(rank, round, i);
      q.memcpy(from.get(), host.data(), p.sent * sizeof(int)).wait();
      q.memset(to.get(), 0x5b, p.received * sizeof(int)).wait();
      plan.start<int>(from.get(), to.get());
      q.memcpy(result.data(), to.get(), p.received * sizeof(int)).wait();
      for (size_t i = 0; i < p.received; ++i)
        ASSERT_EQ(result[i], p.expected(round, i)) << p.name << ", round " << round << ", " << i;
    }
    const auto microseconds = [&](auto&& one) {
      const int rounds = p.received > 1000000 ? 20 : 200;
      double best = 1e9;
      for (int again = 0; again < 3; ++again) {
        comm.blocking().barrier();
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < rounds; ++i) one();
        q.wait();
        const std::chrono::duration<double, std::micro> taken =
            std::chrono::steady_clock::now() - begin;
        best = std::min(best, taken.count() / rounds);
      }
      return best;
    };
    if (!j.queue.get_device().is_gpu()) return;
    const double planned = microseconds([&] { plan.start<int>(from.get(), to.get()); });
    const double plain = microseconds([&] { p.plain(comm, from.get(), to.get()); });
    if (rank == 0)
      std::printf("%s of %zu ints: compiled plan %.1f us, collective %.1f us\n", p.name, p.received,
                  planned, plain);
  }
};

TEST_F(plans, on_memory_of_the_device_are_right) {
  if (size == 1) GTEST_SKIP() << "needs ranks";
  communicator comm = j.in_order_world;
  const bool large = j.queue.get_device().is_gpu();
  for (const size_t n : {size_t{1}, size_t{300}, size_t{20000}, size_t{1000003}}) {
    if (n > 100000 && !large) continue;
    for (const auto& p : {broadcast(n), allgather(n), allreduce_at_once(n), allreduce_in_two(n)})
      for (const compile_options& o : {compile_options{}, compile_options{{}, {}, 1, 1, 4},
                                       compile_options{{(size + 1) / 2, 2}, {}, 2, 1, 2}}) {
        auto plan = comm.compile<int>(p.what, o);
        EXPECT_NE(plan.explain().find("executed by kernels"), std::string::npos) << plan.explain();
        expect_right(p, plan, comm);
        if (HasFatalFailure()) return;
      }
  }
}

}  // namespace
}  // namespace sucl::testing

int main(int argc, char** argv) {
  using namespace sucl::testing;
  try {
    sucl::runtime rt{argc, argv};
    rank_fixture j = make_fixture(own_device(rt.rank()), rt);
    return run_tests(argc, argv, rt, j);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
