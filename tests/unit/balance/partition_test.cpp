// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Shares, what moves between them, and boxes, against brute force and against what they promise.
#include <sucl/error.hpp>
#include <sucl/partition.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace {

using sucl::box_partition;
using sucl::counts;
using sucl::errc;
using sucl::migration;
using sucl::partition;

template <class Body>
void expect_error(errc code, const Body& body) {
  try {
    body();
    ADD_FAILURE() << "no error";
  } catch (const sucl::error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
  }
}

double slowest(const counts& shares, const std::vector<double>& speeds) {
  double most = 0;
  for (std::size_t r = 0; r < shares.size(); ++r)
    if (shares[r] > 0) most = std::max(most, static_cast<double>(shares[r]) / speeds[r]);
  return most;
}

// The least time over all ways to share.
double best_of_all(std::size_t left, std::size_t rank, const std::vector<double>& speeds) {
  if (rank + 1 == speeds.size()) return left == 0 ? 0 : static_cast<double>(left) / speeds[rank];
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t n = 0; n <= left; ++n) {
    const double mine = n == 0 ? 0 : static_cast<double>(n) / speeds[rank];
    best = std::min(best, std::max(mine, best_of_all(left - n, rank + 1, speeds)));
  }
  return best;
}

TEST(partition_of, speeds_of_any_scale) {
  for (const double scale : {1e-310, 1e-300, 1.0, 1e300, 4e307})
    EXPECT_EQ(partition::by_speed(1000, {scale, 3 * scale, 0}).counts_of_ranks(),
              (sucl::counts{250, 750, 0}))
        << scale;
}

TEST(partition_of, equal_shares_differ_by_one) {
  const partition p(11, 4);
  EXPECT_EQ(p.counts_of_ranks(), (counts{3, 3, 3, 2}));
  EXPECT_EQ(p.displacements(), (counts{0, 3, 6, 9}));
  EXPECT_EQ(p.end(3), p.size());
  EXPECT_EQ(partition(2, 3).counts_of_ranks(), (counts{1, 1, 0}));
}

TEST(partition_of, finds_owners_beside_empty_shares) {
  const partition p(counts{0, 3, 0, 0, 2, 0});
  const int owners[] = {1, 1, 1, 4, 4};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(p.owner(i), owners[i]) << i;
  expect_error(errc::invalid_count, [&] { (void)p.owner(5); });
  for (const int rank : {-1, 6}) {
    expect_error(errc::invalid_rank, [&] { (void)p.count(rank); });
    expect_error(errc::invalid_rank, [&] { (void)p.begin(rank); });
    expect_error(errc::invalid_rank, [&] { (void)p.end(rank); });
  }
}

TEST(partition_of, no_other_shares_are_done_sooner) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> speed(0.1, 10);
  for (int n = 0; n < 60; ++n) {
    std::vector<double> speeds(1 + random() % 4);
    for (double& s : speeds) s = speed(random);
    const std::size_t size = random() % 25;
    const auto p = partition::by_speed(size, speeds);
    ASSERT_EQ(p.size(), size);
    EXPECT_LE(slowest(p.counts_of_ranks(), speeds), best_of_all(size, 0, speeds) * (1 + 1e-12));
  }
}

TEST(partition_of, keeps_units_and_least_shares) {
  std::mt19937 random(11);
  for (int n = 0; n < 200; ++n) {
    std::vector<double> speeds(1 + random() % 7);
    for (double& s : speeds) s = random() % 4 == 0 ? 0 : 1 + static_cast<double>(random() % 100);
    speeds[0] = 3;
    const std::size_t unit = 1 + random() % 5, least = random() % 9;
    const std::size_t size = random() % 100000;
    const auto p = partition::by_speed(size, speeds, unit, least);
    ASSERT_EQ(p.size(), size);
    std::size_t last = 0;
    for (std::size_t r = 0; r < speeds.size(); ++r)
      if (p.count(static_cast<int>(r)) > 0) last = r;
    const std::size_t whole = (least + unit - 1) / unit * unit;
    for (std::size_t r = 0; r < speeds.size(); ++r) {
      const std::size_t count = p.count(static_cast<int>(r));
      const bool enough = size / unit >= speeds.size() * (whole / unit);
      EXPECT_TRUE(r == last || count % unit == 0) << r;
      EXPECT_TRUE(r == last || !enough || count >= whole) << r;
      EXPECT_TRUE(speeds[r] > 0 || !enough || count <= whole) << r;
    }
  }
}

TEST(partition_of, very_long_ranges_and_unlike_speeds) {
  const std::size_t size = std::size_t{1} << 52;
  const auto p = partition::by_speed(size, {1e-9, 1, 1e9});
  EXPECT_EQ(p.size(), size);
  EXPECT_GT(p.count(2), size - size / 1000);
  EXPECT_GT(p.count(1), p.count(0));
}

TEST(partition_of, refuses_what_is_no_speed) {
  const double nan = std::nan("");
  for (const std::vector<double>& bad :
       {std::vector<double>{}, {0, 0}, {1, -1}, {1, nan}, {HUGE_VAL, 1}})
    expect_error(errc::invalid_argument, [&] { (void)partition::by_speed(5, bad); });
  expect_error(errc::invalid_argument, [] { (void)partition::by_speed(5, {1}, 0); });
  expect_error(errc::invalid_count, [] { (void)partition(5, 0); });
  expect_error(errc::invalid_count,
               [] { (void)partition(counts{std::numeric_limits<std::size_t>::max(), 1}); });
}

// All ranks at once, with the counts as alltoallv uses them.
TEST(migration_of, brings_every_element_where_it_belongs) {
  std::mt19937 random(5);
  for (int n = 0; n < 100; ++n) {
    const int ranks = 1 + static_cast<int>(random() % 6);
    counts a, b;
    std::size_t size = 0;
    for (int r = 0; r < ranks; ++r) a.push_back(random() % 9);
    for (const std::size_t c : a) size += c;
    std::size_t left = size;
    for (int r = 0; r + 1 < ranks; ++r) {
      b.push_back(left ? random() % (left + 1) : 0);
      left -= b.back();
    }
    b.push_back(left);
    const partition from(a), to(b);
    std::vector<std::vector<std::size_t>> parts(static_cast<std::size_t>(ranks));
    std::size_t crossed = 0, claimed = 0;
    for (int r = 0; r < ranks; ++r) parts[static_cast<std::size_t>(r)].assign(to.count(r), size);
    for (int r = 0; r < ranks; ++r) {
      const migration out(from, to, r);
      claimed = out.moved;
      for (int peer = 0; peer < ranks; ++peer) {
        const migration in(from, to, peer);
        const auto p = static_cast<std::size_t>(peer), q = static_cast<std::size_t>(r);
        ASSERT_EQ(out.send_counts[p], in.recv_counts[q]);
        if (peer != r) crossed += out.send_counts[p];
        for (std::size_t i = 0; i < out.send_counts[p]; ++i)
          parts[p].at(in.recv_displs[q] + i) = from.begin(r) + out.send_displs[p] + i;
      }
    }
    EXPECT_EQ(crossed, claimed);
    for (int r = 0; r < ranks; ++r)
      for (std::size_t i = 0; i < to.count(r); ++i)
        ASSERT_EQ(parts[static_cast<std::size_t>(r)][i], to.begin(r) + i);
  }
  expect_error(errc::mismatch, [] { (void)migration(partition(5, 2), partition(6, 2), 0); });
  expect_error(errc::mismatch, [] { (void)migration(partition(5, 2), partition(5, 3), 0); });
  expect_error(errc::invalid_rank, [] { (void)migration(partition(5, 2), partition(5, 2), 2); });
}

TEST(box_of, is_cut_along_the_slow_ranks) {
  const auto even = box_partition::by_speed({8, 6, 4}, {2, 3, 1}, std::vector<double>(6, 2.0));
  EXPECT_EQ(even.along[0], partition(8, 2));
  EXPECT_EQ(even.along[1], partition(6, 3));
  // One plane of ranks is three times as fast.
  const auto b = box_partition::by_speed({8, 6, 4}, {2, 1, 2}, {1, 1, 3, 3});
  EXPECT_EQ(b.along[0].counts_of_ranks(), (counts{2, 6}));
  EXPECT_EQ(b.along[2].counts_of_ranks(), (counts{2, 2}));
}

// Never slower than equal boxes, and for two ranks as good as the range is.
TEST(box_of, is_no_worse_than_equal_boxes) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> speed(0.5, 4);
  for (int n = 0; n < 60; ++n) {
    const std::array<int, 3> grid{1 + static_cast<int>(random() % 3),
                                  1 + static_cast<int>(random() % 3),
                                  1 + static_cast<int>(random() % 2)};
    std::vector<double> speeds(static_cast<std::size_t>(grid[0] * grid[1] * grid[2]));
    for (double& s : speeds) s = speed(random);
    const std::array<std::size_t, 3> cells{40, 30, 20};
    const auto b = box_partition::by_speed(cells, grid, speeds);
    const auto time = [&](const box_partition& p) {
      double most = 0;
      std::size_t r = 0;
      for (int i = 0; i < grid[0]; ++i)
        for (int j = 0; j < grid[1]; ++j)
          for (int k = 0; k < grid[2]; ++k, ++r)
            most = std::max(most, static_cast<double>(p.along[0].count(i) * p.along[1].count(j) *
                                                      p.along[2].count(k)) /
                                      speeds[r]);
      return most;
    };
    const box_partition equal{
        {partition(40, grid[0]), partition(30, grid[1]), partition(20, grid[2])}};
    EXPECT_LE(time(b), time(equal));
    for (std::size_t d = 0; d < 3; ++d) EXPECT_EQ(b.along[d].size(), cells[d]);
  }
  expect_error(errc::invalid_count,
               [] { (void)box_partition::by_speed({4, 4, 4}, {2, 1, 1}, {1, 1, 1}); });
  expect_error(errc::invalid_argument,
               [] { (void)box_partition::by_speed({4, 4, 4}, {2, 1, 1}, {1, -1}); });
}

}  // namespace
