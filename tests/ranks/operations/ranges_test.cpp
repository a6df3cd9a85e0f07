// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Ranges of elements and single values instead of pointers, and messages to and from no rank.
#include "ranks/fixture.hpp"

#include <array>
#include <complex>
#include <numeric>
#if __has_include(<span>)
#include <span>
#endif

namespace sucl::testing {
namespace {

// A temporary container, a constant one and one of constant elements cannot receive.
static_assert(sucl::detail::can_receive<std::vector<int>&>());
static_assert(!sucl::detail::can_receive<std::vector<int>>());
static_assert(!sucl::detail::can_receive<const std::vector<int>&>());
static_assert(sucl::detail::can_receive<std::array<float, 4>&>());
static_assert(!sucl::detail::can_receive<std::array<float, 4>>());
static_assert(sucl::detail::can_receive<sycl::buffer<int>>());
static_assert(!sucl::detail::is_memory<int*> && !sucl::detail::is_memory<std::vector<bool>>);
#ifdef __cpp_lib_span
static_assert(sucl::detail::can_receive<std::span<int>>());
static_assert(sucl::detail::can_receive<const std::span<int>&>());
static_assert(!sucl::detail::can_receive<std::span<const int>&>());
#endif

struct ranges : ::testing::Test {
  communicator& world = fixture().world;
  blocking_communicator now = world.blocking();
  const int rank = world.rank();
  const int size = world.size();
  const auto ranks() const { return static_cast<std::size_t>(size); }
  const int next = (rank + 1) % size;
  const int last = (rank + size - 1) % size;

  std::vector<int> numbered(std::size_t n) const {
    std::vector<int> v(n);
    std::iota(v.begin(), v.end(), 100 * rank);
    return v;
  }
};

TEST_F(ranges, of_vectors_in_both_forms) {
  const std::vector<int> mine = numbered(5);
  std::vector<int> sums(5, -1), all(5 * ranks(), -1);
  now.allreduce(mine, sums, op::sum);
  world.allgather(mine, all).wait();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(sums[static_cast<std::size_t>(i)], size * i + 100 * (sum_to(size) - size));
    for (int r = 0; r < size; ++r) EXPECT_EQ(all[static_cast<std::size_t>(5 * r + i)], 100 * r + i);
  }
  std::vector<int> in_place = mine;
  world.allreduce(in_place, op::max).wait();
  EXPECT_EQ(in_place, (std::vector<int>{100 * size - 100, 100 * size - 99, 100 * size - 98,
                                        100 * size - 97, 100 * size - 96}));
  world.persistent().broadcast(in_place, 0).run();
}

TEST_F(ranges, of_arrays_and_spans) {
  std::array<double, 3> a{1.0 * rank, 2.0 * rank, 0.5};
  now.broadcast(a, size - 1);
  EXPECT_EQ(a, (std::array<double, 3>{1.0 * (size - 1), 2.0 * (size - 1), 0.5}));
#ifdef __cpp_lib_span
  std::vector<int> from = numbered(10), to(10, -1);
  now.sendrecv(std::span<const int>(from).subspan(2, 3), next, std::span(to).subspan(4, 3), last);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(to[static_cast<std::size_t>(i)], i < 4 || i > 6 ? -1 : 100 * last + i - 2);
#endif
}

TEST_F(ranges, of_messages_and_groups) {
  const std::vector<int> mine = numbered(7);
  std::vector<int> got(7);
  group g(world);
  g.recv(got, last);
  g.send(mine, next);
  g.run();
  EXPECT_EQ(got.front(), 100 * last);
  EXPECT_EQ(got.back(), 100 * last + 6);
}

TEST_F(ranges, that_are_too_small_are_refused) {
  const std::vector<int> mine = numbered(5);
  std::vector<int> small(4);
  const std::string said =
      expect_error(errc::invalid_count, [&] { now.allreduce(mine, small, op::sum); });
  EXPECT_NE(said.find("needs 5 elements of receive memory, but the range has 4"), said.npos)
      << said;
  expect_error(errc::invalid_count, [&] { (void)world.allgather(mine, small); });
  // Also where the same call, on memory that was long enough, has been made before.
  std::vector<int> shrinks(5);
  for (int i = 0; i < 3; ++i) now.allreduce(mine, shrinks, op::sum);
  shrinks.resize(4);
  expect_error(errc::invalid_count, [&] { now.allreduce(mine, shrinks, op::sum); });
  now.barrier();  // the communicator goes on
}

TEST_F(ranges, single_values) {
  const double total = now.allreduce(rank + 0.5, op::sum);
  EXPECT_DOUBLE_EQ(total, sum_to(size) - size + 0.5 * size);
  EXPECT_EQ(now.allreduce(std::complex<float>(1, static_cast<float>(rank)), op::sum),
            std::complex<float>(static_cast<float>(size), static_cast<float>(sum_to(size) - size)));
  EXPECT_EQ(now.broadcast(7 * rank, size - 1), 7 * (size - 1));
  EXPECT_EQ(now.reduce(rank, op::max, 0), rank == 0 ? size - 1 : rank);
  EXPECT_EQ(now.scan(rank + 1, op::sum), sum_to(rank + 1));
  EXPECT_EQ(now.exscan(rank + 1, op::sum), sum_to(rank));
  EXPECT_TRUE(now.allreduce(rank == 0, op::logical_or));
  struct point {
    float x, y;
  };
  const auto points = now.allgather(point{1.F * static_cast<float>(rank), 2.F});
  ASSERT_EQ(points.size(), ranks());
  for (int r = 0; r < size; ++r)
    EXPECT_EQ(points[static_cast<std::size_t>(r)].x, static_cast<float>(r));
  const auto gathered = now.gather(rank, size - 1);
  EXPECT_EQ(gathered.size(), rank == size - 1 ? ranks() : 0);
  EXPECT_EQ(now.rank(), rank);
  EXPECT_EQ(now.size(), size);
}

struct no_rank_messages : ranges {};

TEST_F(no_rank_messages, move_nothing) {
  std::vector<int> mine = numbered(4), got(4, -1);
  now.send(mine, no_rank);
  now.recv(got, no_rank);
  world.send(mine.data(), 4, no_rank).wait();
  world.recv(got.data(), 4, no_rank).wait();
  now.sendrecv(mine, no_rank, got, no_rank);
  world.persistent().send(mine, no_rank).run();
  EXPECT_EQ(got, std::vector<int>(4, -1));
  sycl::buffer<int> b{sycl::range<1>(4)};
  now.send(b, no_rank);
}

// An open chain: the ends have a neighbour on one side.
TEST_F(no_rank_messages, leave_the_other_half_of_a_sendrecv) {
  const int up = rank + 1 < size ? rank + 1 : no_rank;
  const int down = rank > 0 ? rank - 1 : no_rank;
  for (const bool blocking : {true, false}) {
    std::vector<int> mine = numbered(4), got(4, -1);
    if (blocking)
      now.sendrecv(mine, up, got, down);
    else
      world.sendrecv(mine, up, got, down).wait();
    EXPECT_EQ(got[3], down == no_rank ? -1 : 100 * down + 3);
  }
  std::vector<int> mine = numbered(4), got(4, -1);
  group g(world);
  g.sendrecv(mine, up, got, down);
  g.recv(got, no_rank);
  g.submit().wait();
  EXPECT_EQ(got[3], down == no_rank ? -1 : 100 * down + 3);
}

// Calls that are known by their pointers, in both directions.
TEST_F(no_rank_messages, are_repeated) {
  const int up = rank + 1 < size ? rank + 1 : no_rank;
  const int down = rank > 0 ? rank - 1 : no_rank;
  std::vector<int> mine(4), from_below(4, -1), from_above(4, -1);
  for (int step = 0; step < 20; ++step) {
    mine.assign(4, 100 * rank + step);
    now.sendrecv(mine.data(), 4, up, from_below.data(), 4, down);
    now.sendrecv(mine.data(), 4, down, from_above.data(), 4, up);
    ASSERT_EQ(from_below[3], down == no_rank ? -1 : 100 * down + step);
    ASSERT_EQ(from_above[3], up == no_rank ? -1 : 100 * up + step);
  }
}

TEST_F(no_rank_messages, order_events_behind_their_dependencies) {
  latch held(fixture().queue);
  std::vector<int> got(1, -1);
  auto done = world.recv(got, no_rank, 0, {held.event()});
  EXPECT_FALSE(is_complete(done));
  held.release();
  done.wait();
}

TEST_F(no_rank_messages, are_none_where_a_rank_is_needed) {
  int x = 0;
  expect_error(errc::invalid_rank, [&] { now.broadcast(&x, 1, no_rank); });
  expect_error(errc::invalid_rank, [&] { now.send(&x, 1, -2); });
  now.barrier();
}

}  // namespace
}  // namespace sucl::testing
