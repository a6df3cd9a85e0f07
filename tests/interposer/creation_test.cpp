// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// SuCL's set-up for a communicator, and communicators that other threads make: never both at once.
#include "interposer/creation.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace {

using sucl::interposer::creation;
using sucl::interposer::set_up_turn;

TEST(creation, puts_a_set_up_off) {
  std::optional<creation> outer(std::in_place);
  {
    const creation inner;  // a callback of the program's may make another one
    EXPECT_FALSE(set_up_turn(true).granted());
  }
  EXPECT_FALSE(set_up_turn(true).granted());
  outer.reset();
  EXPECT_TRUE(set_up_turn(true).granted());
}

TEST(creation, has_one_set_up_at_a_time) {
  const set_up_turn first(true);
  EXPECT_TRUE(first.granted());
  EXPECT_FALSE(set_up_turn(true).granted());
  EXPECT_FALSE(set_up_turn(true).granted());  // the one before has not ended the first
}

TEST(creation, leaves_a_set_up_alone_that_is_not_wanted) {
  EXPECT_FALSE(set_up_turn(false).granted());
  EXPECT_TRUE(set_up_turn(true).granted());
}

TEST(creation, waits_for_a_set_up) {
  std::atomic<int> inside{0};
  std::atomic<bool> both{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        if (t == 0) {
          const set_up_turn turn(true);
          if (!turn.granted()) continue;
          if (inside > 0) both = true;
          std::this_thread::yield();
          if (inside > 0) both = true;
        } else {
          const creation one;
          ++inside;
          std::this_thread::yield();
          --inside;
        }
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_FALSE(both);
}

}  // namespace
