// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/ab_measurement.hpp"

#include <gtest/gtest.h>

namespace sucl::pmpi {
namespace {

// Plays a trial in which SuCL and MPI take these times.
trial played(int rounds, int turn, double ours, double theirs) {
  trial t(rounds, turn, way::sucl);
  const auto length = static_cast<std::uint64_t>(turn);
  while (!t.over()) {
    const std::uint64_t n = t.started();
    const bool warm_up = n < 2 * length || (turn > 1 && n % length == 0);  // must not count
    const double seconds = t.start() == way::sucl ? ours : theirs;
    if (t.note(n, warm_up ? 1000 : seconds)) {
      EXPECT_TRUE(t.over());
      t.decide(faster(t.medians()), t.medians());
    }
  }
  return t;
}

TEST(trial, takes_the_faster) {
  for (int rounds : {1, 2, 5, trial::most_rounds, 1000})
    for (int turn : {1, 2, 4}) {
      const trial fast = played(rounds, turn, 1, 3);
      ASSERT_TRUE(fast.decided()) << rounds;
      EXPECT_EQ(fast.next(), way::sucl);
      EXPECT_EQ(fast.saving(), 2);
      const trial slow = played(rounds, turn, 3, 1);
      EXPECT_EQ(slow.next(), way::mpi);
      EXPECT_EQ(slow.saving(), 0);
    }
}

TEST(trial, leaves_to_mpi_what_is_as_fast) { EXPECT_EQ(faster({1, 1}), way::mpi); }

TEST(trial, gives_both_as_many_turns) {
  for (int turn : {1, 4}) {
    trial t(4, turn, way::sucl);
    int ours = 0, theirs = 0;
    while (!t.over()) ++(t.start() == way::sucl ? ours : theirs);
    EXPECT_EQ(ours, 5 * turn);  // one round to warm up
    EXPECT_EQ(theirs, 5 * turn);
    EXPECT_EQ(t.next(), way::mpi) << "until there is an answer";
  }
}

TEST(trial, can_be_left_out) {
  EXPECT_EQ(trial(0, 1, way::sucl).next(), way::sucl);
  EXPECT_EQ(trial(0, 1, way::mpi).next(), way::mpi);
  EXPECT_TRUE(trial(0, 1, way::mpi).decided());
}

TEST(trial, goes_by_the_slowest_rank) {
  trial t(1, 1, way::sucl);
  while (!t.over()) t.note(t.started(), t.start() == way::sucl ? 1 : 3);
  t.decide(faster({4, 2}), {4, 2});
  EXPECT_EQ(t.next(), way::mpi);
}

TEST(trial, begins_again) {
  trial t = played(2, 4, 3, 1);
  EXPECT_EQ(t.next(), way::mpi);
  t.again();
  EXPECT_FALSE(t.decided());
  EXPECT_FALSE(t.over());
  EXPECT_EQ(t.started(), 0u);
  EXPECT_EQ(t.start(), way::sucl);
}

// A rank that runs ahead waits in one call of a turn for what the others did not take.
TEST(trial, goes_by_the_mean_of_a_turn) {
  trial t(3, 4, way::sucl);
  while (!t.over()) {
    const std::uint64_t n = t.started();
    const bool waits = n % 4 == 3;
    t.note(n, t.start() == way::sucl ? 2.0 : waits ? 7.0 : 1.0);
  }
  EXPECT_EQ(t.medians(), (std::array<double, 2>{2, 3}));
}

TEST(trial, takes_times_in_any_order) {
  trial t(1, 1, way::sucl);
  while (!t.over()) t.start();
  EXPECT_FALSE(t.note(3, 5));
  EXPECT_FALSE(t.note(2, 4));
  EXPECT_FALSE(t.note(1, 100));
  EXPECT_FALSE(t.note(7, 1)) << "not part of the trial";
  EXPECT_TRUE(t.note(0, 100));
  EXPECT_EQ(t.medians(), (std::array<double, 2>{4, 5}));
}

}  // namespace
}  // namespace sucl::pmpi
