// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// When a thread that polls sleeps.
#include "core/support/backoff.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

namespace {

using sucl::core::backoff;

// Longer than a thread waits before it sleeps.
void wait_long() { std::this_thread::sleep_for(std::chrono::milliseconds(120)); }

// Whether it sleeps: that gives the processor up, which yielding does not count as.
bool naps(backoff& rest, int finished) {
  const auto given_up = [] {
    rusage use{};
    getrusage(RUSAGE_THREAD, &use);
    return use.ru_nvcsw;
  };
  const auto before = given_up();
  rest.after(finished);
  return given_up() != before;
}

TEST(backoff, sleeps_while_nothing_comes_further) {
  backoff rest(0);
  wait_long();
  EXPECT_TRUE(naps(rest, 0));
  EXPECT_FALSE(naps(rest, 1));
}

TEST(backoff, does_not_sleep_while_a_long_operation_moves) {
  backoff rest(0);
  for (int n = 0; n < 3; ++n) {
    wait_long();
    sucl::core::note_advance();
    EXPECT_FALSE(naps(rest, 0));
  }
  wait_long();
  EXPECT_TRUE(naps(rest, 0));
}

TEST(backoff, counts_what_moves_on_the_thread_that_polls) {
  backoff rest(0);
  wait_long();
  std::thread([] { sucl::core::note_advance(); }).join();
  EXPECT_TRUE(naps(rest, 0));
}

}  // namespace
