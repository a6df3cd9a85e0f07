// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/decision/ab_measurement.hpp"

#include <gtest/gtest.h>

namespace sucl::interposer {
namespace {

// Plays an ab_measurement in which SuCL and MPI take these times.
ab_measurement played(int rounds, int turn, double ours, double theirs) {
  ab_measurement t(rounds, turn, choice::sucl);
  const auto length = static_cast<std::uint64_t>(turn);
  while (!t.over()) {
    const std::uint64_t n = t.started();
    const bool warm_up = n < 2 * length || (turn > 1 && n % length == 0);  // must not count
    const double seconds = t.start() == choice::sucl ? ours : theirs;
    if (t.note(n, warm_up ? 1000 : seconds)) {
      EXPECT_TRUE(t.over());
      t.decide(faster(t.medians(), 0.97), t.medians());
    }
  }
  return t;
}

TEST(ab_measurement, takes_the_faster) {
  for (int rounds : {1, 2, 5, ab_measurement::max_rounds, 1000})
    for (int turn : {1, 2, 4}) {
      const ab_measurement fast = played(rounds, turn, 1, 3);
      ASSERT_TRUE(fast.decided()) << rounds;
      EXPECT_EQ(fast.next(), choice::sucl);
      EXPECT_EQ(fast.saving(), 2);
      const ab_measurement slow = played(rounds, turn, 3, 1);
      EXPECT_EQ(slow.next(), choice::mpi);
      EXPECT_EQ(slow.saving(), 0);
    }
}

TEST(ab_measurement, leaves_to_mpi_what_is_as_fast) {
  EXPECT_EQ(faster({1, 1}, 0.97), choice::mpi);
}

TEST(ab_measurement, gives_both_as_many_turns) {
  for (int turn : {1, 4}) {
    ab_measurement t(4, turn, choice::sucl);
    int ours = 0, theirs = 0;
    while (!t.over()) ++(t.start() == choice::sucl ? ours : theirs);
    EXPECT_EQ(ours, 5 * turn);  // one round to warm up
    EXPECT_EQ(theirs, 5 * turn);
    EXPECT_EQ(t.next(), choice::mpi) << "until there is an answer";
  }
}

TEST(ab_measurement, can_be_left_out) {
  EXPECT_EQ(ab_measurement(0, 1, choice::sucl).next(), choice::sucl);
  EXPECT_EQ(ab_measurement(0, 1, choice::mpi).next(), choice::mpi);
  EXPECT_TRUE(ab_measurement(0, 1, choice::mpi).decided());
}

TEST(ab_measurement, goes_by_the_slowest_rank) {
  ab_measurement t(1, 1, choice::sucl);
  while (!t.over()) t.note(t.started(), t.start() == choice::sucl ? 1 : 3);
  t.decide(faster({4, 2}, 0.97), {4, 2});
  EXPECT_EQ(t.next(), choice::mpi);
}

TEST(ab_measurement, begins_again) {
  ab_measurement t = played(2, 4, 3, 1);
  EXPECT_EQ(t.next(), choice::mpi);
  t.again();
  EXPECT_FALSE(t.decided());
  EXPECT_FALSE(t.over());
  EXPECT_EQ(t.started(), 0u);
  EXPECT_EQ(t.start(), choice::sucl);
}

// A rank that runs ahead waits in one call of a turn for what the others did not take.
TEST(ab_measurement, goes_by_the_mean_of_a_turn) {
  ab_measurement t(3, 4, choice::sucl);
  while (!t.over()) {
    const std::uint64_t n = t.started();
    const bool waits = n % 4 == 3;
    t.note(n, t.start() == choice::sucl ? 2.0 : waits ? 7.0 : 1.0);
  }
  EXPECT_EQ(t.medians(), (std::array<double, 2>{2, 3}));
}

TEST(ab_measurement, takes_times_in_any_order) {
  ab_measurement t(1, 1, choice::sucl);
  while (!t.over()) t.start();
  EXPECT_FALSE(t.note(3, 5));
  EXPECT_FALSE(t.note(2, 4));
  EXPECT_FALSE(t.note(1, 100));
  EXPECT_FALSE(t.note(7, 1)) << "not part of the ab_measurement";
  EXPECT_TRUE(t.note(0, 100));
  EXPECT_EQ(t.medians(), (std::array<double, 2>{4, 5}));
}

}  // namespace
}  // namespace sucl::interposer
