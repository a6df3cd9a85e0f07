// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_plan/execution/copy_mode_tuner.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace sucl::core {
namespace {

using std::chrono::nanoseconds;

// Ranks whose operations take as long as they say, one after the other; returns how many of `count`
// were read.
int run(std::vector<copy_mode_tuner>& ranks, int count, const std::vector<nanoseconds>& staged,
        const std::vector<nanoseconds>& read) {
  int reads = 0;
  for (int i = 0; i < count; ++i) {
    timings slowest{0, 0};
    for (const copy_mode_tuner& c : ranks) {
      slowest.staged = std::max(slowest.staged, c.mine().staged);
      slowest.read = std::max(slowest.read, c.mine().read);
    }
    const bool first = ranks[0].next(slowest);
    for (std::size_t r = 1; r < ranks.size(); ++r) EXPECT_EQ(ranks[r].next(slowest), first);
    for (std::size_t r = 0; r < ranks.size(); ++r)
      if (ranks[r].tries()) ranks[r].note(first, first ? read[r] : staged[r]);
    reads += first;
  }
  return reads;
}

constexpr int turn = copy_mode_tuner::cold + copy_mode_tuner::trials;
constexpr int period = copy_mode_tuner::period;

TEST(copy_mode_tuner, tries_both_ways_and_then_takes_the_faster_one) {
  std::vector<copy_mode_tuner> ranks(2);
  const nanoseconds fast(1000), slow(2000), slower(3000);
  EXPECT_EQ(run(ranks, turn, {fast, fast}, {slow, slow}), 0);
  EXPECT_EQ(run(ranks, turn, {fast, fast}, {slow, slow}), turn);
  EXPECT_EQ(run(ranks, period - 2 * turn, {fast, fast}, {slow, slow}), 0);
  EXPECT_FALSE(ranks[0].reads());
  // The slowest rank counts: staging is fast on one of them only.
  EXPECT_EQ(run(ranks, period, {fast, slower}, {slow, slow}), period - turn);
  EXPECT_TRUE(ranks[1].reads());
  EXPECT_EQ(run(ranks, period, {fast, fast}, {slow, slow}), turn) << "it spins again";
}

TEST(copy_mode_tuner, goes_on_as_before_where_a_rank_has_no_times_yet) {
  std::vector<copy_mode_tuner> ranks(1);
  const timings unknown{timings::none, timings::none};
  for (int i = 0; i < 2 * turn; ++i) ranks[0].next(unknown);
  EXPECT_FALSE(ranks[0].next(unknown));
  EXPECT_TRUE(ranks[0].next({2000, 1000}));
  EXPECT_TRUE(ranks[0].next({timings::none, 1000}));
  EXPECT_FALSE(ranks[0].next({500, 1000}));
}

// Scratch lies in the right cache once it has been round.
TEST(copy_mode_tuner, lets_scratch_go_round_before_it_times) {
  constexpr int round = 40, cold = copy_mode_tuner::cold, staged = round + turn - cold;
  std::vector<copy_mode_tuner> ranks(1, copy_mode_tuner(false, round));
  for (int i = 0; i < 2048; ++i) {
    const bool read = ranks[0].next({1000, 2000});
    const bool tries = i < staged ? i >= round : i < staged + turn && i >= staged + cold;
    EXPECT_EQ(ranks[0].tries(), tries) << i;
    EXPECT_EQ(read, i >= staged && i < staged + turn) << i;
  }
}

// During one full pass over the scratch ring, and once all have agreed that reading is slower,
// nothing is to be told.
TEST(copy_mode_tuner, has_converged_while_nothing_is_timed) {
  copy_mode_tuner c;
  constexpr int cold = copy_mode_tuner::cold;
  for (int i = 0; i < 2 * turn; ++i) {
    EXPECT_EQ(c.converged(), i < cold) << i;
    c.next({timings::none, timings::none});
  }
  EXPECT_FALSE(c.converged()) << "no rank has reported a time";
  EXPECT_FALSE(c.next({1000, timings::none}));
  EXPECT_FALSE(c.converged()) << "not all have told";
  EXPECT_FALSE(c.next({1000, 2000}));
  for (int i = 2 * turn + 2; i < period + cold; ++i) {
    EXPECT_TRUE(c.converged()) << i;
    EXPECT_FALSE(c.next());
    EXPECT_FALSE(c.tries());
  }
  EXPECT_FALSE(c.converged()) << "it is tried again";
}

TEST(copy_mode_tuner, is_not_won_by_little) {
  copy_mode_tuner c;
  for (int i = 0; i < 2 * turn; ++i) c.next({timings::none, timings::none});
  EXPECT_FALSE(c.next({1000, 900})) << "telling each other costs, too";
  EXPECT_TRUE(c.next({1000, 800}));
  EXPECT_FALSE(c.converged());
}

// An interrupted trial, or one that was lucky, does not decide.
TEST(copy_mode_tuner, goes_by_the_median) {
  copy_mode_tuner c;
  for (const int ns : {900000, 1000, 1010, 1, 1020}) c.note(false, nanoseconds(ns));
  EXPECT_EQ(c.mine().staged, 1010u);
  EXPECT_EQ(c.mine().read, timings::none) << "it has not been tried";
  c.note(false, nanoseconds(5));
  EXPECT_EQ(c.mine().staged, 1010u) << "enough were tried";
  for (int i = 0; i < 5; ++i) c.note(true, std::chrono::hours(1));
  EXPECT_EQ(c.mine().read, timings::none - 1) << "longer than can be told";
}

// Two times and the number of a tuner travel in one word, in steps of 16 ns.
TEST(copy_mode_tuner, is_packed_with_the_times_of_its_ranks) {
  using sucl::core::packed_timings;
  EXPECT_EQ(packed_timings::of(0).number, 0u);
  for (const int kind : {0, 9, 15})
    for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{70000}, ~std::uint64_t{0}}) {
      const std::uint32_t number = copy_mode_tuners::number_of(kind, bytes);
      const packed_timings unpacked =
          packed_timings::of(packed_timings{number, {160, 1000000007}}.packed());
      EXPECT_EQ(unpacked.number, number);
      EXPECT_EQ(unpacked.times.staged, 160u);
      EXPECT_EQ(unpacked.times.read, 1000000007u / 16 * 16);
      copy_mode_tuners all;
      EXPECT_TRUE(copy_mode_tuners::is_number(number));
      EXPECT_EQ(&all.at(number), &all.of(kind, bytes));
    }
  EXPECT_FALSE(copy_mode_tuners::is_number(0));
  EXPECT_FALSE(copy_mode_tuners::is_number(1023));
  const packed_timings unknown =
      packed_timings::of(packed_timings{1, {timings::none, timings::none - 1}}.packed());
  EXPECT_EQ(unknown.times.staged, timings::none);
  EXPECT_LT(unknown.times.read, timings::none) << "long, but known";
}

TEST(copy_mode_tuner, tries_few_long_operations) {
  std::vector<copy_mode_tuner> ranks(2, copy_mode_tuner(true, 0));
  constexpr int turn = copy_mode_tuner::long_cold + copy_mode_tuner::long_trials;
  const nanoseconds fast(1000), slow(2000);
  EXPECT_EQ(run(ranks, turn, {slow, slow}, {fast, fast}), 0);
  EXPECT_EQ(run(ranks, period - turn, {slow, slow}, {fast, fast}), period - turn);
  EXPECT_TRUE(ranks[0].reads());
}

TEST(copy_mode_tuner, is_one_for_each_kind_and_power_of_two) {
  copy_mode_tuners all;
  EXPECT_EQ(&all.of(1, 4096), &all.of(1, 8191));
  EXPECT_NE(&all.of(1, 4096), &all.of(1, 8192));
  EXPECT_NE(&all.of(1, 4096), &all.of(2, 4096));
  EXPECT_EQ(&all.of(1, std::uint64_t{1} << 60), &all.of(1, std::uint64_t{1} << 61));
}

}  // namespace
}  // namespace sucl::core
