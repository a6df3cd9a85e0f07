// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Operations run in issue order on every rank, and no rank waits without need.
#include "ranks/fixture.hpp"

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

namespace sucl::testing::order_of_calls {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t n = 1000;

struct order : ::testing::Test {
  rank_fixture& j = fixture();
  sycl::queue& q = j.queue;
  communicator& world = j.world;
  const int rank = world.rank();
  const int size = world.size();
  const int last = size - 1;

  // The last rank waits until all others have arrived.
  void signal_last() {
    int token = rank;
    if (rank != last) {
      j.aside.blocking().send(&token, 1, last);
      return;
    }
    for (int r = 0; r < last; ++r) j.aside.blocking().recv(&token, 1, r);
  }
};

// Even ranks make the first operation's dependency ready first, odd ranks the second's;
// native_main.cpp does the same without SuCL ("naive") and gets the sums mixed up.
TEST_F(order, dependencies_that_become_ready_in_opposite_orders) {
  for (int round = 0; round < 3; ++round) {
    shared<int> a(n, q, rank + 1), b(n, q, 1000 * (rank + 1));
    latch for_a(q), for_b(q);
    auto a_done = world.allreduce(a.get(), n, op::sum, {for_a.event()});
    auto b_done = world.allreduce(b.get(), n, op::sum, {for_b.event()});
    (rank % 2 == 0 ? for_a : for_b).release();
    std::this_thread::sleep_for(20ms);
    if (rank % 2 == 1) {
      EXPECT_FALSE(is_complete(b_done));
    }
    (rank % 2 == 0 ? for_b : for_a).release();
    a_done.wait();
    b_done.wait();
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(a[i], sum_to(size));
      ASSERT_EQ(b[i], 1000 * sum_to(size));
    }
  }
}

TEST_F(order, buffers_whose_writers_end_in_opposite_orders) {
  sycl::buffer<int, 1> a{sycl::range<1>(n)}, b{sycl::range<1>(n)};
  latch for_a(q), for_b(q);
  const auto fill = [&](sycl::buffer<int, 1>& x, int value, const sycl::event& after) {
    q.submit([&](sycl::handler& h) {
      h.depends_on(after);
      command_accessor<int, sycl::access_mode::write> to(x, h);
      host_command(h, [to, value] {
        for (std::size_t i = 0; i < n; ++i) to[i] = value;
      });
    });
  };
  fill(a, rank + 1, for_a.event());
  fill(b, 1000 * (rank + 1), for_b.event());
  world.allreduce(a, op::sum);
  world.allreduce(b, op::sum);
  (rank % 2 == 0 ? for_a : for_b).release();
  std::this_thread::sleep_for(20ms);
  (rank % 2 == 0 ? for_b : for_a).release();
  sycl::host_accessor got_a{a}, got_b{b};
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_EQ(got_a[i], sum_to(size));
    ASSERT_EQ(got_b[i], 1000 * sum_to(size));
  }
}

// An operation that is ready waits for one that is not, and the blocking form for both.
TEST_F(order, ready_operations_wait_for_earlier_ones) {
  shared<int> a(n, q, rank + 1), b(n, q, 1000 * (rank + 1)), c(1, q, rank);
  latch gate(q);
  auto a_done = world.allreduce(a.get(), n, op::sum, {gate.event()});
  auto b_done = world.allreduce(b.get(), n, op::sum);
  std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(is_complete(a_done));
  EXPECT_FALSE(is_complete(b_done));
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10 * (rank % 3)));
    gate.release();
  });
  world.blocking().allreduce(c.get(), 1, op::max);
  EXPECT_EQ(c[0], last);
  opener.join();
  b_done.wait();
  a_done.wait();
  EXPECT_EQ(a[n - 1], sum_to(size));
  EXPECT_EQ(b[n - 1], 1000 * sum_to(size));
}

// The event forms return before the last rank has issued anything: it waits for a message that the
// others send after their calls. A call that waits for its peers would never return.
TEST_F(order, event_forms_return_before_a_slow_peer_arrives) {
  shared<int> usm(n, q, rank + 1), queued(n, q, rank + 1);
  sycl::buffer<int, 1> buffer{sycl::range<1>(n)};
  {
    sycl::host_accessor to{buffer};
    for (std::size_t i = 0; i < n; ++i) to[i] = rank + 1;
  }
  const auto issue = [&] {
    std::vector<sycl::event> done;
    done.push_back(world.allreduce(usm.get(), n, op::sum));
    done.push_back(world.allreduce(buffer, op::sum));
    // Several on the same memory queue up behind one another.
    done.push_back(world.allreduce(buffer, op::max));
    done.push_back(world.allreduce(queued.get(), n, op::sum, {done[0]}));
    return done;
  };
  std::vector<sycl::event> done;
  if (rank != last) {
    done = issue();
    for (const auto& e : done) EXPECT_FALSE(is_complete(e));
    signal_last();
  } else {
    signal_last();
    done = issue();
  }
  for (auto& e : done) e.wait();
  EXPECT_EQ(usm[0], sum_to(size));
  EXPECT_EQ(queued[n - 1], sum_to(size));
  sycl::host_accessor got{buffer};
  EXPECT_EQ(got[0], sum_to(size));
  EXPECT_EQ(got[n - 1], sum_to(size));
}

TEST_F(order, other_communicators_go_on_while_a_dependency_is_not_ready) {
  if (has_one_lane(q)) GTEST_SKIP() << one_lane;
  auto other = world.dup();
  shared<int> held(n, q, rank + 1), x(n, q, rank + 1);
  latch gate(q);
  auto late = world.allreduce(held.get(), n, op::sum, {gate.event()});
  other.allreduce(x.get(), n, op::sum).wait();
  other.blocking().allreduce(x.get(), n, op::max);
  EXPECT_EQ(x[0], sum_to(size));
  other.allreduce(x.get(), n, op::max).wait();
  EXPECT_FALSE(is_complete(late));
  gate.release();
  late.wait();
  EXPECT_EQ(held[0], sum_to(size));
}

TEST_F(order, two_communicators_in_opposite_orders) {
  if (has_one_lane(q)) GTEST_SKIP() << one_lane;
  auto first = world.dup();
  auto second = world.dup();
  sycl::buffer<int, 1> buffer_a{sycl::range<1>(n)}, buffer_b{sycl::range<1>(n)};
  for (int round = 0; round < 20; ++round) {
    shared<int> a(n, q, rank + 1), b(n, q, 10 * (rank + 1));
    const bool even = rank % 2 == 0;
    auto& x = even ? first : second;
    auto& y = even ? second : first;
    auto& to_x = even ? a : b;
    auto& to_y = even ? b : a;
    auto& buffer_x = even ? buffer_a : buffer_b;
    auto& buffer_y = even ? buffer_b : buffer_a;
    {
      sycl::host_accessor set_x{buffer_x}, set_y{buffer_y};
      set_x[0] = set_y[0] = rank;
    }
    auto x_done = x.allreduce(to_x.get(), n, op::sum);
    x.allreduce(buffer_x, op::max);
    auto y_done = y.allreduce(to_y.get(), n, op::sum);
    y.allreduce(buffer_y, op::max);
    y_done.wait();
    x_done.wait();
    ASSERT_EQ(a[n - 1], sum_to(size));
    ASSERT_EQ(b[n - 1], 10 * sum_to(size));
    sycl::host_accessor got_x{buffer_x}, got_y{buffer_y};
    ASSERT_EQ(got_x[0], last);
    ASSERT_EQ(got_y[0], last);
  }
}

// No rank calls SuCL while the message moves: it is too long to be sent in one go.
TEST_F(order, operations_end_while_the_caller_computes) {
  if (has_one_lane(q)) GTEST_SKIP() << one_lane;
  constexpr std::size_t many = std::size_t{1} << 20;
  shared<double> x(many, q, rank + 1.0);
  auto done = world.allreduce(x.get(), many, op::sum);
  std::atomic<bool> ended{false};
  q.submit([&](sycl::handler& h) {
    h.depends_on(done);
    host_command(h, [&ended] { ended = true; });
  });
  const auto give_up = std::chrono::steady_clock::now() + 60s;
  volatile double sink = 0;
  while (!ended && std::chrono::steady_clock::now() < give_up)
    for (int i = 0; i < 1000; ++i) sink = sink + i;
  EXPECT_TRUE(ended);
  q.wait();
  EXPECT_EQ(x[many - 1], sum_to(size));
}

// What is issued behind a stalled operation does not stop messages of another thread's
// communicator.
TEST_F(order, a_blocked_thread_does_not_hold_up_another) {
  auto other = world.dup();
  shared<int> x(1, q, rank), y(1, q, rank);
  std::thread helper([&] { other.blocking().allreduce(y.get(), 1, op::sum); });
  if (rank == last) {
    helper.join();
    world.blocking().allreduce(x.get(), 1, op::max);
  } else {
    world.blocking().allreduce(x.get(), 1, op::max);
    helper.join();
  }
  EXPECT_EQ(x[0], last);
  EXPECT_EQ(y[0], sum_to(size - 1));
}

// A message in pieces goes on while its sender is inside a blocking collective, which its receiver
// enters only after the message.
TEST_F(order, packed_messages_pass_blocking_collectives) {
  if (size < 2) GTEST_SKIP() << "needs a peer";
  constexpr std::size_t side = 512;
  sycl::buffer<int, 2> from{sycl::range<2>(side, side)};
  {
    sycl::host_accessor to{from};
    for (std::size_t i = 0; i < side; ++i)
      for (std::size_t k = 0; k < side; ++k) to[i][k] = static_cast<int>(i * side + k);
  }
  constexpr std::size_t part = side / 2;
  shared<int> x(1, q, rank);
  std::vector<int> got(part * part);
  if (rank == 0) world.send(block(from, {1, 1}, {part, part}), 1);
  if (rank == 1) world.blocking().recv(got.data(), got.size(), 0);
  world.blocking().allreduce(x.get(), 1, op::max);
  EXPECT_EQ(x[0], last);
  if (rank == 1) {
    EXPECT_EQ(got.front(), static_cast<int>(side + 1));
    EXPECT_EQ(got.back(), static_cast<int>(part * side + part));
  }
  world.wait();
}

// A message that is received while its receiver is inside a blocking collective, and too long to be
// sent before that.
TEST_F(order, messages_pass_blocking_collectives) {
  if (size < 2) GTEST_SKIP() << "needs a peer";
  std::vector<int> message(1 << 18, rank);
  int x = rank;
  sycl::event received;
  if (rank == 0) received = world.recv(message.data(), message.size(), 1);
  if (rank == 1) world.blocking().send(message.data(), message.size(), 0);
  world.blocking().allreduce(&x, 1, op::max);
  EXPECT_EQ(x, last);
  received.wait();
  if (rank == 0) {
    EXPECT_EQ(message.back(), 1);
  }
}

// Only some ranks have to pack; all come to the same way through the backend.
TEST_F(order, blocking_form_with_a_block_on_one_rank) {
  constexpr std::size_t side = 16;
  sycl::buffer<int, 2> image{sycl::range<2>(side, side)};
  std::vector<int> line(9, -1);
  for (int root : {0, last}) {
    {
      sycl::host_accessor to{image};
      for (std::size_t i = 0; i < side; ++i)
        for (std::size_t k = 0; k < side; ++k)
          to[i][k] = root * 1000 + static_cast<int>(i * side + k);
    }
    auto comm = world.blocking();
    if (rank == root)
      comm.broadcast(block(image, {2, 3}, {3, 3}), root);
    else
      comm.broadcast(line.data(), line.size(), root);
    comm.barrier();
    if (rank != root) {
      EXPECT_EQ(line[0], root * 1000 + 2 * 16 + 3);
      EXPECT_EQ(line[8], root * 1000 + 4 * 16 + 5);
    }
  }
}

}  // namespace
}  // namespace sucl::testing::order_of_calls
