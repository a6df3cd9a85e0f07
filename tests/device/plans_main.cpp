// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Compiled plans on device memory, on a GPU if there is one, checked against a plain loop. On GPUs
// it prints what a start takes back to back, beside the collective of the same meaning. No kernels,
// so that no SYCL compiler is needed. By kernels with SUCL_BACKEND_KERNELS_PLANS=1.
#include "ranks/fixture.hpp"
#include "support/own_device.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sucl::testing {
namespace {

using std::size_t;
using element = float;  // all sums are whole numbers that it has exactly

struct plans : ::testing::Test {
  rank_fixture& j = fixture();
  const int rank = j.world.rank();
  const int size = j.world.size();
  size_t ranks() const { return static_cast<size_t>(size); }

  using memory = std::shared_ptr<element>;
  memory on_device(size_t count) {
    auto& q = j.in_order;
    return {sycl::malloc_device<element>(count, q), [q](element* x) { sycl::free(x, q); }};
  }
  static element value(int r, int round, size_t i) {
    return static_cast<element>((r + 1) * 10007 + round * 7919 +
                                static_cast<int>(i % 8191) * (r + 3));
  }
  element sum(int round, size_t i) const {
    element all = 0;
    for (int r = 0; r < size; ++r) all += value(r, round, i);
    return all;
  }

  // What this rank sends and shall have received, and the collective that does the same.
  struct problem {
    const char* name;
    composition what;
    size_t largest;  ///< of the buffers of all ranks
    size_t sent, received;
    std::function<element(int round, size_t i)> expected;
    std::function<void(communicator, const element*, element*)> plain;
  };
  // The table of the functions in HiCCL's paper (Hidayetoglu and others 2024): first those of one
  // step, `n` elements from or for each rank, then those of two.
  std::vector<problem> table(size_t n) const {
    return {scatter(n),
            gather(n),
            broadcast(n),
            reduce(n),
            alltoall(n),
            allgather(n),
            reduce_scatter(n),
            allreduce("allreduce", allreduce_at_once(n), n),
            broadcast("broadcast, 2 steps", scatter_and_allgather(n), n * ranks()),
            reduce("reduce, 2 steps", reduce_scatter_and_gather(n), n * ranks()),
            allgather("allgather, 2 steps", gather_and_broadcast(n), n),
            reduce_scatter("reduce_scatter, 2 steps", reduce_and_scatter(n), n),
            allreduce("allreduce, 2 steps", reduce_scatter_and_allgather(n), n * ranks())};
  }

  const int root = size - 1;
  size_t at_root(size_t n) const { return rank == root ? n : 0; }
  std::vector<int> all_but(int one) const {
    std::vector<int> others;
    for (int r = 0; r < size; ++r)
      if (r != one) others.push_back(r);
    return others;
  }
  template <class Function>
  void each_block(size_t n, const Function& f) const {
    for (int r = 0; r < size; ++r) f(r, static_cast<size_t>(r) * n);
  }

  problem scatter(size_t n) const {
    composition c{size};
    each_block(n, [&](int r, size_t at) { c.multicast(c.send(at, n), c.recv(0, n), root, {r}); });
    const size_t mine = static_cast<size_t>(rank) * n;
    return {"scatter",
            c,
            n * ranks(),
            n * ranks(),
            n,
            [=, this](int round, size_t i) { return value(root, round, mine + i); },
            [=, this](communicator comm, const element* x, element* y) {
              comm.scatter(x, y, n, root);
            }};
  }
  problem gather(size_t n) const {
    composition c{size};
    each_block(n, [&](int r, size_t at) { c.multicast(c.send(0, n), c.recv(at, n), r, {root}); });
    return {
        "gather",
        c,
        n * ranks(),
        n,
        at_root(n * ranks()),
        [=](int round, size_t i) { return value(static_cast<int>(i / n), round, i % n); },
        [=, this](communicator comm, const element* x, element* y) { comm.gather(x, y, n, root); }};
  }
  problem broadcast(size_t n) const {
    composition c{size};
    c.multicast(c.send(0, n), c.recv(0, n), root, all);
    return broadcast("broadcast", c, n);
  }
  composition scatter_and_allgather(size_t n) const {
    composition c{size};
    each_block(n, [&](int r, size_t at) { c.multicast(c.send(at, n), c.recv(at, n), root, {r}); });
    c.fence();
    each_block(n,
               [&](int r, size_t at) { c.multicast(c.recv(at, n), c.recv(at, n), r, all_but(r)); });
    return c;
  }
  problem broadcast(const char* name, const composition& c, size_t n) const {
    return {name,
            c,
            n,
            n,
            n,
            [=, this](int round, size_t i) { return value(root, round, i); },
            [=, this](communicator comm, const element* x, element* y) {
              comm.broadcast(rank == root ? const_cast<element*>(x) : y, n, root);
            }};
  }
  problem reduce(size_t n) const {
    composition c{size};
    c.reduction(c.send(0, n), c.recv(0, n), all, root, op::sum);
    return reduce("reduce", c, n);
  }
  composition reduce_scatter_and_gather(size_t n) const {
    composition c{size};
    each_block(n, [&](int r, size_t at) {
      c.reduction(c.send(at, n), r == root ? c.recv(at, n) : c.scratch(at, n), all, r, op::sum);
    });
    c.fence();
    each_block(n, [&](int r, size_t at) {
      if (r != root) c.multicast(c.scratch(at, n), c.recv(at, n), r, {root});
    });
    return c;
  }
  problem reduce(const char* name, const composition& c, size_t n) const {
    return {name,
            c,
            n,
            n,
            at_root(n),
            [this](int round, size_t i) { return sum(round, i); },
            [=, this](communicator comm, const element* x, element* y) {
              comm.reduce(x, y, n, op::sum, root);
            }};
  }
  problem alltoall(size_t n) const {
    composition c{size};
    each_block(n, [&](int s, size_t to) {
      each_block(n,
                 [&](int r, size_t from) { c.multicast(c.send(from, n), c.recv(to, n), s, {r}); });
    });
    const size_t mine = static_cast<size_t>(rank) * n;
    return {
        "alltoall",
        c,
        n * ranks(),
        n * ranks(),
        n * ranks(),
        [=](int round, size_t i) { return value(static_cast<int>(i / n), round, mine + i % n); },
        [=](communicator comm, const element* x, element* y) { comm.alltoall(x, y, n); }};
  }
  problem allgather(size_t n) const {
    composition c{size};
    each_block(n, [&](int r, size_t at) { c.multicast(c.send(0, n), c.recv(at, n), r, all); });
    return allgather("allgather", c, n);
  }
  composition gather_and_broadcast(size_t n) const {
    composition c{size};
    each_block(n, [&](int r, size_t at) { c.multicast(c.send(0, n), c.recv(at, n), r, {root}); });
    c.fence();
    const slice whole = c.recv(0, n * ranks());
    c.multicast(whole, whole, root, all_but(root));
    return c;
  }
  problem allgather(const char* name, const composition& c, size_t n) const {
    return {name,
            c,
            n * ranks(),
            n,
            n * ranks(),
            [=](int round, size_t i) { return value(static_cast<int>(i / n), round, i % n); },
            [=](communicator comm, const element* x, element* y) { comm.allgather(x, y, n); }};
  }
  problem reduce_scatter(size_t n) const {
    composition c{size};
    each_block(
        n, [&](int r, size_t at) { c.reduction(c.send(at, n), c.recv(0, n), all, r, op::sum); });
    return reduce_scatter("reduce_scatter", c, n);
  }
  composition reduce_and_scatter(size_t n) const {
    composition c{size};
    c.reduction(c.send(0, n * ranks()), c.scratch(0, n * ranks()), all, root, op::sum);
    c.fence();
    each_block(n,
               [&](int r, size_t at) { c.multicast(c.scratch(at, n), c.recv(0, n), root, {r}); });
    return c;
  }
  problem reduce_scatter(const char* name, const composition& c, size_t n) const {
    const size_t mine = static_cast<size_t>(rank) * n;
    return {name,
            c,
            n * ranks(),
            n * ranks(),
            n,
            [=, this](int round, size_t i) { return sum(round, mine + i); },
            [=](communicator comm, const element* x, element* y) {
              comm.reduce_scatter_block(x, y, n, op::sum);
            }};
  }
  composition allreduce_at_once(size_t n) const {
    composition c{size};
    each_block(n, [&](int r, size_t) { c.reduction(c.send(0, n), c.recv(0, n), all, r, op::sum); });
    return c;
  }
  composition reduce_scatter_and_allgather(size_t n) const {
    composition c{size};
    each_block(
        n, [&](int r, size_t at) { c.reduction(c.send(at, n), c.recv(at, n), all, r, op::sum); });
    c.fence();
    each_block(n,
               [&](int r, size_t at) { c.multicast(c.recv(at, n), c.recv(at, n), r, all_but(r)); });
    return c;
  }
  problem allreduce(const char* name, const composition& c, size_t n) const {
    return {
        name,
        c,
        n,
        n,
        n,
        [this](int round, size_t i) { return sum(round, i); },
        [=](communicator comm, const element* x, element* y) { comm.allreduce(x, y, n, op::sum); }};
  }

  void expect_right(const problem& p, compiled_plan& plan) {
    auto& q = j.in_order;
    const auto from = on_device(p.sent), to = on_device(std::max<size_t>(p.received, 1));
    std::vector<element> host(p.sent), result(p.received);
    for (int round = 0; round < 3; ++round) {
      for (size_t i = 0; i < p.sent; ++i) host[i] = value(rank, round, i);
      q.memcpy(from.get(), host.data(), p.sent * sizeof(element)).wait();
      q.memset(to.get(), 0x5b, p.received * sizeof(element)).wait();
      plan.start<element>(from.get(), to.get());
      q.memcpy(result.data(), to.get(), p.received * sizeof(element)).wait();
      for (size_t i = 0; i < p.received; ++i)
        ASSERT_EQ(result[i], p.expected(round, i))
            << p.name << ", round " << round << ", " << i << ": " << plan.explain();
    }
  }

  // Of a start back to back, by the host's clock: the best of three times some.
  template <class Function>
  double microseconds(communicator comm, size_t count, const Function& one) {
    const int rounds = count > 1000000 ? 20 : 200;
    double best = 1e9;
    for (int again = 0; again < 3; ++again) {
      comm.blocking().barrier();
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < rounds; ++i) one();
      j.in_order.wait();
      const std::chrono::duration<double, std::micro> taken =
          std::chrono::steady_clock::now() - begin;
      best = std::min(best, taken.count() / rounds);
    }
    return best;
  }

  const std::vector<compile_options> ways{
      {}, {{}, {}, 1, 1, 4}, {{(size + 1) / 2, 2}, {}, 2, 1, 2}};
};

TEST_F(plans, on_memory_of_the_device_are_right) {
  if (size == 1) GTEST_SKIP() << "needs ranks";
  const char* const set = std::getenv("SUCL_BACKEND_KERNELS_PLANS");
  const bool by_kernels = set && set == std::string_view("1");
  communicator comm = j.in_order_world;
  // On the CPU device, where work items wait for each other, less is done.
  const bool large = j.queue.get_device().is_gpu();
  for (const size_t n : {size_t{300}, size_t{20000}, size_t{1}, size_t{200001}, size_t{1000003}}) {
    if (n != 300 && n != 20000 && !large) continue;
    for (const auto& p : table(n))
      for (const compile_options& o : ways) {
        if (n != 300 && &o != &ways.front() && !large) continue;
        auto plan = comm.compile<element>(p.what, o);
        EXPECT_EQ(plan.explain().find("executed by kernels") != std::string::npos, by_kernels)
            << plan.explain();
        expect_right(p, plan);
        if (HasFatalFailure()) return;
      }
  }
}

// A line for each problem and size of the largest buffer.
TEST_F(plans, on_gpus_beside_collectives) {
  if (size == 1 || !j.queue.get_device().is_gpu()) GTEST_SKIP() << "needs GPUs";
  communicator comm = j.in_order_world;
  for (const size_t bytes : {size_t{1} << 20, size_t{4} << 20, size_t{16} << 20, size_t{64} << 20})
    for (size_t k = 0; k < table(1).size(); ++k) {
      const problem p = table(bytes / sizeof(element) / table(1)[k].largest)[k];
      const auto from = on_device(p.largest), to = on_device(p.largest);
      std::vector<double> planned;
      for (const compile_options& o : ways) {
        auto plan = comm.compile<element>(p.what, o);
        planned.push_back(microseconds(comm, bytes / sizeof(element),
                                       [&] { plan.start<element>(from.get(), to.get()); }));
      }
      const double plain =
          microseconds(comm, bytes / sizeof(element), [&] { p.plain(comm, from.get(), to.get()); });
      if (rank > 0) continue;
      std::printf("%s, %zu bytes: collective %.1f us; plans", p.name, bytes, plain);
      for (const double t : planned) std::printf(" %.1f", t);
      std::printf(" us\n");
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
