// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The mutex that is biased to a thread.
#include "core/support/biased_mutex.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace {

using sucl::core::biased_mutex;

// Locks often enough to be biased.
void earn(biased_mutex& m) {
  for (int i = 0; i < 1000; ++i) {
    const std::lock_guard lock(m);
    m.bias_to_me();
  }
}

TEST(biased_mutex, excludes_the_thread_with_the_bias) {
  biased_mutex m;
  long count = 0;
  constexpr int rounds = 20000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      if (t == 0) earn(m);
      for (int i = 0; i < rounds; ++i) {
        if (i % 2000 == 1999) earn(m);
        if (t == 2) {
          while (!m.try_lock()) std::this_thread::yield();
        } else {
          m.lock();
        }
        ++count;
        m.bias_to_me();
        m.unlock();
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(count, 3 * rounds);
}

// A thread that was stopped just before it says that it is inside must not say so for another one.
TEST(biased_mutex, only_one_thread_is_ever_favoured) {
  biased_mutex m;
  earn(m);
  EXPECT_TRUE(m.is_biased_to_me());
  std::thread([&] {
    earn(m);
    EXPECT_FALSE(m.is_biased_to_me());
  }).join();
  EXPECT_FALSE(m.is_biased_to_me());
  earn(m);
  EXPECT_TRUE(m.is_biased_to_me());
}

TEST(biased_mutex, a_bias_outlives_its_thread) {
  biased_mutex m;
  int value = 0;
  std::thread([&] {
    earn(m);
    const std::lock_guard lock(m);
    value = 1;
  }).join();
  const std::lock_guard lock(m);
  EXPECT_EQ(value, 1);
}

TEST(biased_mutex, the_favoured_thread_is_waited_for) {
  biased_mutex m;
  bool inside = false;
  std::atomic<bool> entered{false}, tried{false};
  std::thread biased([&] {
    earn(m);
    const std::lock_guard lock(m);
    inside = true;
    entered = true;
    while (!tried) std::this_thread::yield();
    inside = false;
  });
  while (!entered) std::this_thread::yield();
  EXPECT_FALSE(m.try_lock());
  tried = true;
  {
    const std::lock_guard lock(m);
    EXPECT_FALSE(inside);
  }
  biased.join();
}

}  // namespace
