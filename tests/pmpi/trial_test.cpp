// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "pmpi/trial.hpp"

#include <gtest/gtest.h>

namespace sucl::pmpi {
namespace {

// Plays a trial in which SuCL and MPI take these times.
trial played(int rounds, double ours, double theirs) {
  trial t(rounds, way::sucl);
  for (int i = 0; i < 1000; ++i) {
    const double warm_up = i < 2 ? 1000 : 0;  // must not count
    if (!t.note((t.next() == way::sucl ? ours : theirs) + warm_up)) continue;
    t.decide(t.medians());
    return t;
  }
  return t;
}

TEST(trial, takes_the_faster) {
  for (int rounds : {1, 2, 5, trial::most_rounds - 1}) {
    const trial fast = played(rounds, 1, 3);
    ASSERT_TRUE(fast.decided()) << rounds;
    EXPECT_EQ(fast.next(), way::sucl);
    EXPECT_EQ(fast.saving(), 2);
    const trial slow = played(rounds, 3, 1);
    EXPECT_EQ(slow.next(), way::mpi);
    EXPECT_EQ(slow.saving(), 0);
  }
}

TEST(trial, gives_both_as_many_turns) {
  trial t(4, way::sucl);
  int ours = 0;
  int theirs = 0;
  do ++(t.next() == way::sucl ? ours : theirs);
  while (!t.note(1));
  EXPECT_EQ(ours, 5);  // one to warm up
  EXPECT_EQ(theirs, 5);
}

TEST(trial, can_be_left_out) {
  EXPECT_EQ(trial(0, way::sucl).next(), way::sucl);
  EXPECT_EQ(trial(0, way::mpi).next(), way::mpi);
  EXPECT_TRUE(trial(0, way::mpi).decided());
}

TEST(trial, bounds_the_rounds) { EXPECT_TRUE(played(1000, 1, 2).decided()); }

TEST(trial, goes_by_the_slowest_rank) {
  trial t(1, way::sucl);
  while (!t.note(1)) {
  }
  t.decide({4, 2});
  EXPECT_EQ(t.next(), way::mpi);
}

}  // namespace
}  // namespace sucl::pmpi
