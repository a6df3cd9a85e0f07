// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// When work moves, with times that are computed instead of measured.
#include <sucl/error.hpp>
#include <sucl/partition.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using sucl::balance_options;
using sucl::balancer;
using sucl::errc;
using sucl::partition;

// What ranks of these speeds take for their shares; each time off by up to `noise` of it.
std::vector<double> times(const partition& p, const std::vector<double>& speeds, double noise,
                          std::mt19937& random) {
  std::uniform_real_distribution<double> off(1 - noise, 1 + noise);
  std::vector<double> all;
  for (int r = 0; r < p.ranks(); ++r)
    all.push_back(static_cast<double>(p.count(r)) / speeds[static_cast<std::size_t>(r)] *
                  off(random));
  return all;
}

double slowest(const partition& p, const std::vector<double>& speeds) {
  double most = 0;
  for (int r = 0; r < p.ranks(); ++r)
    most = std::max(most, static_cast<double>(p.count(r)) / speeds[static_cast<std::size_t>(r)]);
  return most;
}

TEST(balancer_of, finds_the_best_shares) {
  std::mt19937 random(1);
  const std::vector<double> speeds{1, 10, 3};
  balancer b(partition(10000, 3));
  for (int n = 0; n < 10; ++n) b.update(times(b.current(), speeds, 0, random));
  EXPECT_LE(slowest(b.current(), speeds), 10000.0 / 14 * 1.01);
}

TEST(balancer_of, relieves_a_rank_that_slows_down_within_ten_steps) {
  std::mt19937 random(2);
  std::vector<double> speeds{4, 4, 4, 4};
  balancer b(partition(100000, 4));
  for (int n = 0; n < 20; ++n) b.update(times(b.current(), speeds, 0.02, random));
  speeds[2] = 1;
  int moves = 0;
  for (int n = 0; n < 10; ++n) moves += b.update(times(b.current(), speeds, 0.02, random));
  EXPECT_GT(moves, 0);
  EXPECT_LE(slowest(b.current(), speeds), 100000.0 / 13 * 1.1);
  speeds[2] = 4;  // and gets its work back
  for (int n = 0; n < 10; ++n) b.update(times(b.current(), speeds, 0.02, random));
  EXPECT_LE(slowest(b.current(), speeds), 100000.0 / 16 * 1.1);
}

TEST(balancer_of, does_not_move_work_for_noise) {
  std::mt19937 random(3);
  const std::vector<double> speeds{5, 5, 5};
  balancer b(partition(3000, 3));
  for (int n = 0; n < 1000; ++n)
    EXPECT_FALSE(b.update(times(b.current(), speeds, 0.04, random))) << n;
}

TEST(balancer_of, one_outlier_moves_nothing) {
  balancer b(partition(3000, 3));
  EXPECT_FALSE(b.update({1, 1, 1}));
  EXPECT_FALSE(b.update({1, 9, 1}));
  balance_options steady;
  steady.smoothing = 1;
  balancer c(partition(3000, 3), steady);
  EXPECT_FALSE(c.update({1, 9, 1}));
  EXPECT_FALSE(c.update({1, 1, 1}));
  EXPECT_FALSE(c.update({1, 9, 1}));
  EXPECT_TRUE(c.update({1, 9, 1}));
}

// What the others can take over is little beside what it has, so its average alone would say so
// late.
TEST(balancer_of, soon_relieves_a_fast_rank_that_slows_down) {
  balancer b(partition::by_speed(256, {255, 1}));
  for (int n = 0; n < 5; ++n) EXPECT_FALSE(b.update({0.13e-3, 0.09e-3}));
  EXPECT_FALSE(b.update({2.6e-3, 0.09e-3}));
  EXPECT_TRUE(b.awaits_confirmation());
  EXPECT_FALSE(b.update({2.6e-3, 0.09e-3}));
  EXPECT_TRUE(b.awaits_confirmation());
  EXPECT_TRUE(b.update({2.6e-3, 0.09e-3}));
  EXPECT_GT(b.current().count(1), 5u);
}

TEST(balancer_of, says_when_it_awaits_a_confirmation) {
  balancer b(partition(3000, 3));
  EXPECT_FALSE(b.awaits_confirmation());
  b.update({1, 1, 1});
  EXPECT_FALSE(b.awaits_confirmation());
  b.update({1, 9, 1});
  EXPECT_TRUE(b.awaits_confirmation());
  EXPECT_TRUE(b.update({1, 9, 1}));
  EXPECT_FALSE(b.awaits_confirmation());
  sucl::box_balancer boxes({30, 10, 10}, {3, 1, 1}, {1, 1, 1});
  boxes.update({1, 9, 1});
  EXPECT_TRUE(boxes.awaits_confirmation());
}

// Equal speeds would save a second in each step, and a move takes five.
TEST(balancer_of, moves_once_shares_have_lost_as_much_as_a_move_takes) {
  balancer b(partition(sucl::counts{3000, 1000}));
  b.note_move({2, 5});
  for (int n = 0; n < 4; ++n) {
    EXPECT_FALSE(b.update({3, 1})) << n;
    EXPECT_EQ(b.awaits_confirmation(), n == 0) << n;
  }
  EXPECT_TRUE(b.update({3, 1}));
  balancer seldom(partition(sucl::counts{3000, 1000}));
  seldom.note_move({2, 5});
  EXPECT_FALSE(seldom.update({3, 1}, 1));
  EXPECT_TRUE(seldom.update({3, 1}, 8)) << "the steps in between have lost time as well";
  sucl::box_balancer boxes({40, 10, 10}, {2, 1, 1}, {3, 1});
  boxes.note_move({5, 0});
  for (int n = 0; n < 4; ++n) EXPECT_FALSE(boxes.update({3, 1})) << n;
  EXPECT_TRUE(boxes.update({3, 1}));
}

// A device that slows down after many steps, though a move takes as long as several of them save.
TEST(balancer_of, does_not_wait_for_losses_where_a_speed_changes) {
  balancer b(partition::by_speed(256, {255, 1}));
  b.note_move({5e-3, 5e-3});
  const auto waited = [&] {
    int steps = 0;
    while (!b.update({2.6e-3, 0.09e-3}) && steps < 20) ++steps;
    return steps;
  };
  for (int n = 0; n < 100; ++n) EXPECT_FALSE(b.update({0.13e-3, 0.09e-3}));
  EXPECT_LE(waited(), 2);
  balancer soon(partition::by_speed(256, {255, 1}));
  soon.note_move({5e-3, 5e-3});
  for (int n = 0; n < 2; ++n) EXPECT_FALSE(soon.update({0.13e-3, 0.09e-3}));
  std::swap(b, soon);
  EXPECT_GE(waited(), 3) << "it may change again as soon";
}

// What is lost now and then is forgotten: it is noise.
TEST(balancer_of, does_not_sum_up_what_later_steps_do_not_lose) {
  balance_options at_once;
  at_once.smoothing = 1;
  balancer b(partition(2000, 2), at_once);
  b.note_move({3, 3});
  for (int n = 0; n < 100; ++n) {
    EXPECT_FALSE(b.update({1.3, 1})) << n;
    EXPECT_FALSE(b.update({1.3, 1})) << n;
    EXPECT_FALSE(b.update({1, 1})) << n;
  }
}

// Speeds that change at random, but not at once by much: what moves and wrong shares take together
// is little where a move takes little, and not much more than twice of what wrong shares would take
// without any.
TEST(balancer_of, moves_that_take_long_do_not_cost_more_than_they_save) {
  std::mt19937 random(5);
  for (const double cost : {0.0, 500.0, 5000.0, 500000.0}) {
    balancer b(partition(1000, 2));
    const partition first = b.current();
    std::vector<double> speeds{1, 1};
    double taken = 0, without = 0, best = 0;
    for (int n = 0; n < 2000; ++n) {
      if (n % 50 == 0) speeds[0] = std::uniform_real_distribution<double>(0.8, 1.2)(random);
      taken += slowest(b.current(), speeds);
      without += slowest(first, speeds);
      best += slowest(partition::by_speed(1000, speeds), speeds);
      if (!b.update(times(b.current(), speeds, 0.05, random))) continue;
      b.note_move({cost, cost});
      taken += cost;
    }
    if (cost == 0) {
      EXPECT_LE(taken, 1.1 * best);
    }
    // What the first move takes is not known before, and the times are not exact.
    EXPECT_LE(taken - best, 2.5 * (without - best) + cost) << cost;
  }
}

TEST(balancer_of, a_rank_without_work_gets_some_to_be_measured) {
  std::mt19937 random(4);
  const std::vector<double> speeds{1, 1, 2};
  balancer b(partition(sucl::counts{500, 500, 0}));
  for (int n = 0; n < 10; ++n) b.update(times(b.current(), speeds, 0, random));
  EXPECT_LE(slowest(b.current(), speeds), 250 * 1.05);
}

TEST(balancer_of, boxes_as_well_as_ranges) {
  const std::vector<double> speeds{1, 1, 3, 3};
  sucl::box_balancer b({40, 40, 40}, {2, 2, 1}, {1, 1, 1, 1});
  const auto now = [&] {
    std::vector<double> all;
    for (int r = 0; r < 4; ++r)
      all.push_back(static_cast<double>(b.current().along[0].count(r / 2) *
                                        b.current().along[1].count(r % 2) * 40) /
                    speeds[static_cast<std::size_t>(r)]);
    return all;
  };
  int moves = 0;
  for (int n = 0; n < 10; ++n) moves += b.update(now());
  EXPECT_GT(moves, 0);
  EXPECT_EQ(b.current().along[0].counts_of_ranks(), (sucl::counts{10, 30}));
  EXPECT_EQ(b.current().along[1].counts_of_ranks(), (sucl::counts{20, 20}));
  EXPECT_FALSE(b.update(now()));
}

TEST(balancer_of, every_rank_decides_the_same) {
  std::mt19937 random(5);
  const std::vector<double> speeds{1, 2, 3, 4, 5};
  balancer a(partition(997, 5)), b(partition(997, 5));
  for (int n = 0; n < 50; ++n) {
    const auto measured = times(a.current(), speeds, 0.3, random);
    EXPECT_EQ(a.update(measured), b.update(measured));
    EXPECT_EQ(a.current(), b.current());
  }
}

// As of a clock that is broken, or of units that are not seconds.
TEST(balancer_of, times_of_any_size) {
  const double tiny = std::numeric_limits<double>::denorm_min();
  const double huge = std::numeric_limits<double>::max();
  for (const double odd : {tiny, 1e-300, 1e300, huge})
    for (const std::vector<double>& seconds :
         {std::vector<double>{odd, odd}, {odd, 1}, {1, odd}, {tiny, huge}}) {
      balancer b(partition(1000, 2));
      for (int n = 0; n < 20; ++n) {
        b.update(seconds, n == 7 ? std::numeric_limits<int>::max() : 1);
        b.note_move(seconds);
        EXPECT_EQ(b.current().size(), 1000u);
      }
      // What it has learned does not last.
      b.note_move({0, 0});
      for (int n = 0; n < 60; ++n)
        b.update({static_cast<double>(b.current().count(0)),
                  static_cast<double>(b.current().count(1)) / 3});
      EXPECT_NEAR(static_cast<double>(b.current().count(0)), 250, 15) << odd;
    }
}

TEST(balancer_of, a_third_rank_without_work_beside_huge_speeds) {
  balancer b(partition(sucl::counts{500, 500, 0}));
  for (int n = 0; n < 5; ++n) b.update({1e-308, 1e-308, 0});
  EXPECT_EQ(b.current().size(), 1000u);
  EXPECT_GT(b.current().count(2), 0u);
}

TEST(balancer_of, different_steps_of_ranks_are_a_mismatch) {
  EXPECT_EQ(sucl::detail::agreed_times({0.5, 3, 0.25, 3}), (std::vector<double>{0.5, 0.25}));
  for (const auto& [said, text] : {std::pair{std::vector<double>{1, 3, 1, 3, 1, 2},
                                             "update() with 3 steps, rank 2 update() with"},
                                   std::pair{std::vector<double>{1, 0, 1, 5}, "note_move(), or"}})
    try {
      sucl::detail::agreed_times(said);
      ADD_FAILURE() << "no error";
    } catch (const sucl::error& e) {
      EXPECT_EQ(e.code(), errc::mismatch);
      EXPECT_NE(e.info().message.find(text), std::string::npos) << e.info().message;
    }
}

TEST(balancer_of, refuses_what_is_no_time) {
  balancer b(partition(10, 2));
  for (const std::vector<double>& bad : {std::vector<double>{1}, {1, -1}, {1, 0.0 / 0.0}}) try {
      b.update(bad);
      ADD_FAILURE() << "no error";
    } catch (const sucl::error& e) {
      EXPECT_TRUE(e.code() == errc::invalid_count || e.code() == errc::invalid_argument);
    }
  EXPECT_THROW(b.update({1, 1}, 0), sucl::error);
  EXPECT_THROW(b.note_move({1}), sucl::error);
  EXPECT_THROW(b.note_move({1, -1}), sucl::error);
  for (const balance_options& bad :
       {balance_options{0, 0.05, 2, 1, 1}, balance_options{0.5, 1, 2, 1, 1},
        balance_options{0.5, 0.05, 0, 1, 1}, balance_options{0.5, 0.05, 2, 0, 1}})
    EXPECT_THROW(balancer(partition(10, 2), bad), sucl::error);
}

}  // namespace
