// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Operations among copies, on a GPU if there is one: no kernels, so that no SYCL compiler is
// needed. Every operation depends on the last of many copies. Where it does not wait for them it
// reads what was there before, as native commands of DPC++'s CUDA adapter do on an out-of-order
// queue.
#include "ranks/fixture.hpp"
#include "support/own_device.hpp"

#include <cstdio>

namespace sucl::testing {
namespace {

using std::size_t;

constexpr size_t n = 5000;

using ints = std::shared_ptr<int>;
ints device_ints(const sycl::queue& q, size_t count) {
  return {sycl::malloc_device<int>(count, q), [q](int* data) { sycl::free(data, q); }};
}

sycl::event copy(sycl::queue& q, const int* from, int* to, size_t count,
                 const std::vector<sycl::event>& deps) {
  return q.submit([&](sycl::handler& h) {
    h.depends_on(deps);
    h.memcpy(to, from, count * sizeof(int));
  });
}

std::vector<int> read(sycl::queue& q, const ints& from, const sycl::event& after) {
  std::vector<int> host(n);
  copy(q, from.get(), host.data(), n, {after}).wait();
  return host;
}

struct copies : ::testing::Test {
  rank_fixture& j = fixture();
  const int rank = j.world.rank();
  const int size = j.world.size();

  // Copies that take a GPU tens of milliseconds: far longer than it takes to enqueue them.
  const bool gpu = j.queue.get_device().is_gpu();
  const size_t many = gpu ? 200 : 8;
  const size_t large = gpu ? size_t{64} << 20 : size_t{1} << 16;
  ints m_large = device_ints(j.queue, 2 * large);

  sycl::event long_copies(sycl::queue& q) const {
    sycl::event last;
    for (size_t i = 0; i < many; ++i)
      last = copy(q, m_large.get() + i % 2 * large, m_large.get() + (i + 1) % 2 * large, large,
                  i == 0 ? std::vector<sycl::event>{} : std::vector{last});
    return last;
  }

  /// Numbers of this rank, in device memory.
  ints numbers(sycl::queue& q, int first) const {
    std::vector<int> host(n);
    for (size_t i = 0; i < n; ++i) host[i] = first + static_cast<int>(i);
    auto data = device_ints(q, n);
    copy(q, host.data(), data.get(), n, {}).wait();
    return data;
  }
  /// The sum of all ranks' numbers, where those of a rank begin with its own number.
  int sum_at(size_t i) const { return sum_to(size - 1) + size * static_cast<int>(i); }

  void follow_long_copies(sycl::queue& q, communicator& comm, bool through_the_host) const {
    const auto from = numbers(q, rank), x = numbers(q, -1000), y = numbers(q, -2000);
    // The halves come by different ways: an operation that waits for one only is wrong as well.
    const size_t half = n / 2;
    const auto waited = long_copies(q);
    const auto low = copy(q, from.get(), x.get(), half, {waited});
    const auto high = copy(q, from.get() + half, x.get() + half, n - half, {waited});
    const auto done = through_the_host ? comm.scan(x.get(), y.get(), n, op::sum, {low, high})
                                       : comm.allreduce(x.get(), y.get(), n, op::sum, {low, high});
    const auto got = read(q, y, comm.allreduce(y.get(), n, op::max, {done}));
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(got[i], sum_at(i)) << i;
  }
};

TEST_F(copies, come_before_an_operation_out_of_order) {
  for (int round = 0; round < 3; ++round) follow_long_copies(j.queue, j.world, false);
}

TEST_F(copies, come_before_an_operation_in_order) {
  for (int round = 0; round < 3; ++round) follow_long_copies(j.in_order, j.in_order_world, false);
}

// What the vendor's library lacks, between what it has.
TEST_F(copies, come_before_what_the_host_executes) {
  follow_long_copies(j.queue, j.world, true);
  follow_long_copies(j.in_order, j.in_order_world, true);
}

TEST_F(copies, of_buffers_come_before_an_operation) {
  auto& q = j.queue;
  std::vector<int> mine(n);
  for (size_t i = 0; i < n; ++i) mine[i] = rank + static_cast<int>(i);
  sycl::buffer<int, 1> from(mine.data(), n), y{sycl::range<1>(n)}, x{sycl::range<1>(n)};
  sycl::buffer<int, 1> first{sycl::range<1>(large)}, second{sycl::range<1>(large)};
  const auto copy_buffer = [&](sycl::buffer<int, 1>& source, sycl::buffer<int, 1>& target,
                               size_t count) {
    q.submit([&](sycl::handler& h) {
      sycl::accessor a(source, h, sycl::range<1>(count), sycl::read_only);
      sycl::accessor b(target, h, sycl::range<1>(count), sycl::write_only);
      h.copy(a, b);
    });
  };
  for (int round = 0; round < 3; ++round) {
    std::vector<int> before(n, -1000);
    q.submit([&](sycl::handler& h) {
      sycl::accessor a(x, h, sycl::write_only, sycl::no_init);
      h.copy(before.data(), a);
    });
    copy_buffer(x, first, n);
    q.wait();
    for (size_t i = 0; i < many; ++i)
      copy_buffer(i % 2 == 0 ? first : second, i % 2 == 0 ? second : first, large);
    copy_buffer(from, first, n);  // after all of them, as it writes the same buffer
    copy_buffer(first, x, n);
    j.world.allreduce(x, y, op::sum);
    sycl::host_accessor got(y, sycl::read_only);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(got[i], sum_at(i)) << i;
  }
}

// The call returns while a host task waits, which the copy before the operation depends on.
TEST_F(copies, wait_for_a_host_task_and_the_call_does_not) {
#ifdef SYCL_IMPLEMENTATION_ACPP
  GTEST_SKIP() << one_lane;
#endif
  auto& q = j.queue;
  const auto from = numbers(q, rank), x = numbers(q, -1000), y = numbers(q, -2000);
  latch gate(q);
  const auto copied = copy(q, from.get(), x.get(), n, {gate.event()});
  const auto done = j.world.allreduce(x.get(), y.get(), n, op::sum, {copied});
  EXPECT_FALSE(is_complete(done));
  gate.release();
  const auto got = read(q, y, done);
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(got[i], sum_at(i)) << i;
}

// Each operation reads what was copied just before, and is copied away before the next one.
TEST_F(copies, between_many_operations_in_a_row) {
  constexpr int rounds = 100;
  auto& q = j.queue;
  std::vector<ints> from, to;
  for (int round = 0; round < rounds; ++round) {
    from.push_back(numbers(q, rank + round));
    to.push_back(device_ints(q, n));
  }
  const auto x = device_ints(q, n), y = device_ints(q, n);
  sycl::event last;
  for (size_t round = 0; round < rounds; ++round) {
    const auto copied = copy(q, from[round].get(), x.get(), n, {last});
    const auto done = j.world.allreduce(x.get(), y.get(), n, op::sum, {copied});
    last = copy(q, y.get(), to[round].get(), n, {done});
  }
  for (size_t round = 0; round < rounds; ++round) {
    const auto got = read(q, to[round], last);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(got[i], sum_at(i + round)) << i;
  }
}

// Ranks issue the operations of two communicators in different order.
TEST_F(copies, of_two_communicators_in_any_order) {
  auto& q = j.queue;
  auto other = j.world_with(q);
  const auto from = numbers(q, rank);
  for (int round = 0; round < 20; ++round) {
    const auto a = numbers(q, -1000), b = numbers(q, -2000);
    const auto reduce = [&](communicator& comm, const ints& x) {
      return comm.allreduce(x.get(), n, op::sum, {copy(q, from.get(), x.get(), n, {})});
    };
    sycl::event first, second;
    if (rank % 2 == 0) first = reduce(j.world, a);
    second = reduce(other, b);
    if (rank % 2 != 0) first = reduce(j.world, a);
    const auto got_a = read(q, a, first), got_b = read(q, b, second);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(got_a[i], sum_at(i)) << i;
    ASSERT_EQ(got_a, got_b);
  }
}

}  // namespace
}  // namespace sucl::testing

int main(int argc, char** argv) {
  try {
    sucl::runtime rt{argc, argv};
    auto j = sucl::testing::make_fixture(sucl::testing::own_device(rt.rank()), rt);
    j.world_with = [&](const sycl::queue& q) { return rt.world(q); };
    return sucl::testing::run_tests(argc, argv, rt, j);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
