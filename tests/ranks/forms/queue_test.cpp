// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Operations among other commands: in-order queues, events, accessors.
#include "ranks/fixture.hpp"

#include <chrono>
#include <thread>

namespace sucl::testing::queue_order {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t n = 4096;

struct queue : ::testing::Test {
  rank_fixture& j = fixture();
  const int rank = j.world.rank();
  const int size = j.world.size();
  const int last = size - 1;
};

// Each command reads what the one before it wrote, and nothing but the queue orders them.
TEST_F(queue, in_order) {
  auto q = j.in_order;
  shared<int> x(n, q), y(n, q);
  int* from = x.get();
  int* to = y.get();
  for (int round = 0; round < 10; ++round) {
    const int mine = rank + round;
    q.submit([&](sycl::handler& h) {
      host_command(h, [=] {
        if (round % 3 == 0) std::this_thread::sleep_for(5ms);
        for (std::size_t i = 0; i < n; ++i) from[i] = mine;
      });
    });
    j.in_order_world.allreduce(from, to, n, op::max);
    q.memcpy(from, to, n * sizeof(int));
    j.in_order_world.allreduce(from, n, op::sum);
    q.submit([&](sycl::handler& h) {
      host_command(h, [=] {
        for (std::size_t i = 0; i < n; ++i) from[i] += 1;
      });
    });
    q.wait();
    ASSERT_EQ(x[0], size * (last + round) + 1);
    ASSERT_EQ(x[n - 1], size * (last + round) + 1);
    ASSERT_EQ(y[n / 2], last + round);
  }
}

TEST_F(queue, waiting_for_the_queue_waits_for_the_operation) {
  for (auto* comm : {&j.world, &j.in_order_world}) {
    auto q = comm->queue();
    shared<int> x(n, q, rank);
    // The last rank comes late.
    if (rank == last) std::this_thread::sleep_for(30ms);
    auto done = comm->allreduce(x.get(), n, op::max);
    q.wait();
    EXPECT_TRUE(is_complete(done));
    EXPECT_EQ(x[n - 1], last);
  }
}

// The same calls over and over, in each form, in turns, with other data and, at times, a late rank.
TEST_F(queue, calls_come_again) {
  auto& q = j.queue;
  shared<int> x(n, q), y(n, q), z(n, q);
  auto kept = j.world.persistent().allreduce(x.get(), z.get(), n, op::max);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const int root = round % size;
    const std::size_t at = round % 2 ? n - 1 : 0;
    x[at] = round + rank;
    y[at] = z[at] = -1;
    if (round % 50 == 20 && rank == round / 50 % size) std::this_thread::sleep_for(5ms);
    const auto summed = j.world.allreduce(x.get(), y.get(), n, op::sum);
    const auto most = kept.start();
    if (round % 3 == 0) {  // nothing is in flight
      q.wait();
      j.world.wait();
    }
    const auto all = {summed, most};
    for (auto e : all) e.wait();
    ASSERT_EQ(y[at], size * round + sum_to(last));
    ASSERT_EQ(z[at], round + last);
    j.world.broadcast(x.get(), n, root).wait();
    ASSERT_EQ(x[at], round + root);
    j.world.blocking().allreduce(x.get(), y.get(), n, op::sum);
    ASSERT_EQ(y[at], size * (round + root));
    auto first = j.world.sendrecv(x.get(), 1, (rank + 1) % size, z.get(), 1, (rank + last) % size);
    first.wait();
    ASSERT_EQ(z[0], x[0]);
  }
  j.world.check();
}

// Memory that was freed may come back as memory of another kind.
TEST_F(queue, calls_come_again_on_memory_of_another_kind) {
  auto& q = j.queue;
  for (int round = 0; round < 20; ++round) {
    int* const x = round % 2 ? sycl::malloc_host<int>(n, q) : sycl::malloc_device<int>(n, q);
    q.fill(x, rank + round, n).wait();
    for (int again = 0; again < 3; ++again) j.world.allreduce(x, n, op::max).wait();
    int got = -1;
    q.memcpy(&got, x + n - 1, sizeof got).wait();
    sycl::free(x, q);
    ASSERT_EQ(got, last + round);
  }
}

TEST_F(queue, events_chain) {
  auto& q = j.queue;
  shared<int> x(n, q), y(n, q), z(n, q);
  int* from = x.get();
  auto filled = q.fill(from, rank + 1, n);
  auto summed = j.world.allreduce(x.get(), y.get(), n, op::sum, {filled});
  auto copied = q.memcpy(z.get(), y.get(), n * sizeof(int), summed);
  auto again = j.world.allreduce(z.get(), n, op::sum, {copied});
  again.wait();
  EXPECT_TRUE(is_complete(again));
  EXPECT_TRUE(is_complete(filled));
  EXPECT_EQ(y[n - 1], sum_to(size));
  EXPECT_EQ(z[0], size * sum_to(size));
}

TEST_F(queue, blocking_form_waits_for_its_dependencies) {
  for (auto* comm : {&j.world, &j.in_order_world}) {
    auto q = comm->queue();
    shared<int> x(n, q);
    int* to = x.get();
    auto filled = q.submit([&](sycl::handler& h) {
      host_command(h, [=, r = rank] {
        std::this_thread::sleep_for(10ms);
        for (std::size_t i = 0; i < n; ++i) to[i] = r + 1;
      });
    });
    if (q.is_in_order())
      comm->blocking().allreduce(x.get(), n, op::sum);
    else
      comm->blocking().allreduce(x.get(), n, op::sum, {filled});
    EXPECT_EQ(x[n - 1], sum_to(size));
  }
}

// A writer, an operation, a reader and writer, an operation, the host: accessors order them all.
TEST_F(queue, accessors_chain) {
  auto& q = j.queue;
  sycl::buffer<int, 1> x{sycl::range<1>(n)}, y{sycl::range<1>(n)};
  q.submit([&](sycl::handler& h) {
    command_accessor<int, sycl::access_mode::write> to(x, h);
    host_command(h, [to, r = rank] {
      std::this_thread::sleep_for(10ms);
      for (std::size_t i = 0; i < n; ++i) to[i] = r;
    });
  });
  j.world.allreduce(x, y, op::sum);
  q.submit([&](sycl::handler& h) {
    command_accessor<int, sycl::access_mode::read_write> to(y, h);
    command_accessor<int, sycl::access_mode::write> source(x, h);
    host_command(h, [to, source] {
      for (std::size_t i = 0; i < n; ++i) {
        to[i] += 1;
        source[i] = -1;
      }
    });
  });
  j.world.blocking().allreduce(y, op::max);
  j.world.broadcast(sucl::block(y, {1}, {1}), last);
  sycl::host_accessor got{y}, old{x};
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_EQ(got[i], sum_to(last) + 1);
    ASSERT_EQ(old[i], -1);
  }
}

// Readers of a buffer that is only sent do not wait for the peer.
TEST_F(queue, sent_buffers_stay_readable) {
  if (size < 2) GTEST_SKIP() << "needs a peer";
  sycl::buffer<int, 1> x{sycl::range<1>(std::size_t{1} << 20)};  // too long to be sent at once
  {
    sycl::host_accessor to{x};
    to[0] = 42;
  }
  if (rank == 0) {
    j.world.send(x, 1);
    sycl::host_accessor<int, 1, sycl::access_mode::read> got{x};
    EXPECT_EQ(got[0], 42);
    int token = 0;
    j.aside.blocking().send(&token, 1, 1);
  } else if (rank == 1) {
    int token = 0;
    j.aside.blocking().recv(&token, 1, 0);
    j.world.recv(x, 0);
    sycl::host_accessor<int, 1, sycl::access_mode::read> got{x};
    EXPECT_EQ(got[0], 42);
  }
  j.world.wait();
}

TEST_F(queue, buffers_outlive_their_handles) {
  std::vector<int> result(n);
  {
    sycl::buffer<int, 1> x(result.data(), sycl::range<1>(n));
    {
      sycl::host_accessor to{x};
      for (std::size_t i = 0; i < n; ++i) to[i] = rank + 1;
    }
    j.world.allreduce(x, op::sum);
  }  // the last handle waits and writes back
  EXPECT_EQ(result[0], sum_to(size));
  EXPECT_EQ(result[n - 1], sum_to(size));
}

}  // namespace
}  // namespace sucl::testing::queue_order
