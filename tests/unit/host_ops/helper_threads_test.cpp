// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Threads that share work do each part of it once, whichever thread asks for it and however often,
// and what they write is there when the call returns.
#include "core/host_ops/helper_threads.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace sucl::core {
namespace {

// Adds one to each of so many elements.
std::uint64_t count_wrong(helper_threads& helpers, std::uint64_t total, std::uint64_t part) {
  std::vector<std::uint32_t> times(total);
  std::atomic<std::uint64_t> too_long{0};
  helpers.share_out(total, part, [&](std::uint64_t begin, std::uint64_t n) noexcept {
    if (n > part && n != total) ++too_long;
    for (std::uint64_t i = begin; i < begin + n; ++i) ++times[i];
  });
  std::uint64_t wrong = too_long;
  for (const std::uint32_t n : times) wrong += n != 1;
  return wrong;
}

TEST(helper_threads, do_each_part_once) {
  const auto helpers = helper_threads::share(3);
  ASSERT_TRUE(helpers);
  EXPECT_EQ(helpers->count(), 3);
  for (const std::uint64_t part : {1, 7, 64})
    for (const std::uint64_t total : {0, 1, 6, 7, 8, 63, 64, 65, 1000})
      for (int round = 0; round < 20; ++round)
        ASSERT_EQ(count_wrong(*helpers, total, part), 0u) << total << " in parts of " << part;
}

TEST(helper_threads, take_no_part_of_another_job) {
  const auto helpers = helper_threads::share(3);
  ASSERT_TRUE(helpers);
  // Jobs of very unlike numbers of parts, one after the other, each with memory of its own.
  std::uint64_t wrong = 0;
  for (int round = 0; round < 20000; ++round) wrong += count_wrong(*helpers, round % 2 ? 40 : 2, 1);
  EXPECT_EQ(wrong, 0u);
}

TEST(helper_threads, help_one_thread_at_a_time_and_leave_the_others_alone) {
  const auto helpers = helper_threads::share(2);
  ASSERT_TRUE(helpers);
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> callers;
  callers.reserve(3);
  for (int t = 0; t < 3; ++t)
    callers.emplace_back([&] {
      for (int round = 0; round < 1000; ++round) wrong += count_wrong(*helpers, 200, 3);
    });
  for (auto& t : callers) t.join();
  EXPECT_EQ(wrong, 0u);
}

TEST(helper_threads, do_help) {
  const auto helpers = helper_threads::share(2);
  ASSERT_TRUE(helpers);
  // A part that ends only once another one has begun needs two threads.
  std::atomic<int> begun{0};
  std::array<std::thread::id, 2> by;
  helpers->share_out(2, 1, [&](std::uint64_t begin, std::uint64_t) noexcept {
    by[begin] = std::this_thread::get_id();
    for (++begun; begun < 2;) std::this_thread::yield();
  });
  EXPECT_NE(by[0], by[1]);
}

TEST(helper_threads, wake_from_sleep) {
  const auto helpers = helper_threads::share(1);
  ASSERT_TRUE(helpers);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> begun{0};
    helpers->share_out(2, 1, [&](std::uint64_t, std::uint64_t) noexcept {
      for (++begun; begun < 2;) std::this_thread::yield();
    });
    EXPECT_EQ(begun, 2);
  }
}

TEST(helper_threads, belong_to_the_process_until_the_last_holder_gives_them_up) {
  EXPECT_FALSE(helper_threads::share(0));
  {
    const auto first = helper_threads::share(2), second = helper_threads::share(5);
    EXPECT_EQ(first, second);
    EXPECT_EQ(second->count(), 2);
  }
  EXPECT_EQ(helper_threads::share(1)->count(), 1);
}

}  // namespace
}  // namespace sucl::core
