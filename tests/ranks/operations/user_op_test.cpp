// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Reductions by functions of the program, against a fold in the order of the ranks.
#include "ranks/fixture.hpp"

#include <cmath>
#include <span>

namespace sucl::testing {
namespace {

// Composition of affine maps: associative, and not commutative. Wraps.
struct affine {
  std::uint32_t factor, term;
  bool operator==(const affine& o) const { return factor == o.factor && term == o.term; }
};

affine compose(const affine& first, const affine& second) {
  return {first.factor * second.factor, first.term * second.factor + second.term};
}

affine of(int rank, std::size_t i) {
  const auto n = static_cast<std::uint32_t>(i);
  return {2 * n + 3 + static_cast<std::uint32_t>(rank), 7 * static_cast<std::uint32_t>(rank) + n};
}

struct user_ops : ::testing::TestWithParam<std::size_t> {
  communicator& world = fixture().world;
  const int rank = world.rank();
  const int size = world.size();
  const std::size_t n = GetParam();
  const user_op<affine> op{compose};

  std::vector<affine> inputs(std::size_t count) const {
    std::vector<affine> v(count);
    for (std::size_t i = 0; i < count; ++i) v[i] = of(rank, i);
    return v;
  }
  // Over ranks 0 to `last`.
  static affine expected(std::size_t i, int last) {
    affine all = of(0, i);
    for (int r = 1; r <= last; ++r) all = compose(all, of(r, i));
    return all;
  }
  void expect(const std::vector<affine>& got, int last, std::size_t first = 0) const {
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], expected(first + i, last)) << "element " << i << " of " << got.size();
  }
};

TEST_P(user_ops, allreduce_in_the_order_of_ranks) {
  const auto mine = inputs(n);
  std::vector<affine> got(n, affine{0, 0});
  op.allreduce(world, mine.data(), got.data(), n).wait();
  expect(got, size - 1);
  auto in_place = mine;
  op.allreduce(world, in_place.data(), in_place.data(), n).wait();
  expect(in_place, size - 1);
}

TEST_P(user_ops, reduce_to_each_root) {
  for (int root = 0; root < size; ++root) {
    const auto mine = inputs(n);
    std::vector<affine> got(n, affine{0, 0});
    op.reduce(world, mine.data(), got.data(), n, root).wait();
    if (rank == root)
      expect(got, size - 1);
    else
      EXPECT_EQ(got, std::vector<affine>(n, affine{0, 0}));
  }
}

TEST_P(user_ops, scan_and_exscan) {
  const auto mine = inputs(n);
  std::vector<affine> got(n, affine{0, 0}), before(n, affine{0, 0});
  op.scan(world, mine.data(), got.data(), n).wait();
  expect(got, rank);
  op.exscan(world, mine.data(), before.data(), n).wait();
  if (rank > 0)
    expect(before, rank - 1);
  else
    EXPECT_EQ(before, std::vector<affine>(n, affine{0, 0}));
}

TEST_P(user_ops, reduce_scatter_shares_of_different_sizes) {
  counts shares;
  std::size_t all = 0, start = 0;
  for (int r = 0; r < size; ++r) {
    if (r == rank) start = all;
    shares.push_back(r % 2 == 0 ? n : n / 3);
    all += shares.back();
  }
  const auto mine = inputs(all);
  std::vector<affine> got(shares[static_cast<std::size_t>(rank)], affine{0, 0});
  op.reduce_scatter(world, mine.data(), got.data(), shares).wait();
  expect(got, size - 1, start);
}

// Operations behind it, and others in flight.
TEST_P(user_ops, overlap_with_other_operations) {
  const auto mine = inputs(n);
  std::vector<affine> one(n), two(n);
  std::vector<int> sums(10, rank);
  const auto first = op.allreduce(world, mine.data(), one.data(), n);
  const auto other = world.allreduce(sums, op::sum);
  const auto second = op.allreduce(world, mine.data(), two.data(), n);
  sycl::event::wait({first, other, second});
  expect(one, size - 1);
  expect(two, size - 1);
  EXPECT_EQ(sums[9], sum_to(size) - size);
}

INSTANTIATE_TEST_SUITE_P(counts, user_ops, ::testing::Values(0u, 1u, 5u, 300u, 4096u, 100'001u));

TEST(user_op, wait_for_their_dependencies) {
  auto& j = fixture();
  shared<double> in(50'000, j.queue, 1.0), out(50'000, j.queue, 0.0);
  const user_op<double> longest([](double a, double b) { return std::hypot(a, b); });
  latch held(j.queue);
  auto filled = j.queue.submit([&](sycl::handler& h) {
    h.depends_on(held.event());
    host_command(h, [p = in.get()] { std::fill(p, p + 50'000, 2.0); });
  });
  auto done = longest.allreduce(j.world, in.get(), out.get(), in.size(), {filled});
  held.release();
  done.wait();
  double expected = 2.0;
  for (int r = 1; r < j.world.size(); ++r) expected = std::hypot(expected, 2.0);
  EXPECT_EQ(out[0], expected);
  EXPECT_EQ(out[49'999], expected);
}

TEST(user_op, of_one_value_and_without_a_queue) {
  auto& j = fixture();
  const user_op<int> larger([](int a, int b) { return a > b ? a : b; });
  EXPECT_EQ(larger.allreduce(j.world, 10 * j.world.rank()), 10 * (j.world.size() - 1));
  EXPECT_EQ(larger.allreduce(j.aside, 10 * j.world.rank()), 10 * (j.world.size() - 1));
  std::vector<int> mine(30'000, j.world.rank()), got(30'000);
  larger.allreduce(j.aside, mine.data(), got.data(), mine.size()).wait();
  EXPECT_EQ(got.back(), j.world.size() - 1);
  auto in_order = larger.allreduce(j.in_order_world, mine.data(), got.data(), mine.size());
  in_order.wait();
  EXPECT_EQ(got.front(), j.world.size() - 1);
}

TEST(scaled_sum, of_a_factor_for_each_rank) {
  auto& j = fixture();
  const int size = j.world.size(), rank = j.world.rank();
  const auto n = static_cast<std::size_t>(1000 * size);
  // Rank r contributes (r + 1) * (i + r): whole numbers, so that the order does not matter.
  std::vector<double> mine(n), got(n, -1), block(1000, -1);
  for (std::size_t i = 0; i < n; ++i) mine[i] = static_cast<double>(i) + rank;
  const auto expected = [&](std::size_t i) {
    double sum = 0;
    for (int r = 0; r < size; ++r) sum += (r + 1) * (static_cast<double>(i) + r);
    return sum;
  };
  const scaled_sum<double> weighted(rank + 1.0);
  weighted.reduce_scatter_block(j.world, mine.data(), block.data(), 1000).wait();
  EXPECT_EQ(block[7], expected(static_cast<std::size_t>(1000 * rank + 7)));
  weighted.reduce(j.world, mine.data(), got.data(), n, size - 1).wait();
  EXPECT_EQ(got[n - 1], rank == size - 1 ? expected(n - 1) : -1);
  weighted.allreduce(j.aside, mine.data(), got.data(), n).wait();
  EXPECT_EQ(got[n / 2], expected(n / 2));
  weighted.allreduce(j.world, mine.data(), mine.data(), n).wait();
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(mine[i], expected(i)) << i;
}

TEST(user_op, refuse_counts_that_do_not_fit) {
  auto& j = fixture();
  const user_op<int> larger([](int a, int b) { return a > b ? a : b; });
  std::vector<int> mine(3, 1), got(3);
  expect_error(errc::invalid_count, [&] {
    (void)larger.reduce_scatter(j.world, mine.data(), got.data(),
                                counts(static_cast<std::size_t>(j.world.size()) + 1, 1));
  });
  j.world.blocking().barrier();
}

TEST(user_op, take_ranges_and_check_their_sizes) {
  auto& j = fixture();
  const int rank = j.world.rank(), size = j.world.size();
  const auto ranks = static_cast<std::size_t>(size);
  const user_op<int> larger([](int a, int b) { return a > b ? a : b; });
  const std::vector<int> mine(5, rank);
  std::vector<int> got(5, -1), none;
  larger.allreduce(j.world, mine, got).wait();
  EXPECT_EQ(got, std::vector<int>(5, size - 1));
  larger.reduce(j.world, mine, rank == size - 1 ? got : none, size - 1).wait();
  larger.scan(j.world, mine, got).wait();
  EXPECT_EQ(got, mine);
  larger.exscan(j.world, mine, got).wait();
  EXPECT_EQ(got, std::vector<int>(5, std::max(rank - 1, 0)));
  const std::vector<int> shares(2 * ranks, rank);
  larger.reduce_scatter(j.world, shares, got, counts(ranks, 2)).wait();
  EXPECT_EQ(got[0], size - 1);
  const scaled_sum<int> doubled(2);
  doubled.reduce_scatter_block(j.world, std::vector<int>(ranks, 1), std::span(got.data(), 1))
      .wait();
  EXPECT_EQ(got[0], 2 * size);

  std::vector<int> four(4);
  const auto refused = [](const auto& call) { expect_error(errc::invalid_count, call); };
  refused([&] { (void)larger.allreduce(j.world, mine, four); });
  refused([&] { (void)larger.scan(j.world, mine, four); });
  refused([&] { (void)larger.exscan(j.world, mine, four); });
  refused([&] { (void)larger.reduce(j.world, mine, four, rank); });
  refused([&] { (void)larger.reduce_scatter(j.world, mine, got, counts(ranks, 6)); });
  refused([&] { (void)doubled.allreduce(j.world, mine, four); });
  refused([&] { (void)doubled.reduce_scatter_block(j.world, none, got); });
  j.world.blocking().barrier();
}

}  // namespace
}  // namespace sucl::testing
