// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Entries come out by time, and those of one time as they were pushed, whatever is pushed between.
#include "sim/event_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

namespace sucl::sim {
namespace {

struct entry {
  ticks at = 0;
  int number = 0;
};

class event_queues : public testing::TestWithParam<int> {};

TEST_P(event_queues, give_what_a_sorted_set_gives) {
  std::mt19937_64 random(static_cast<unsigned>(GetParam()));
  const ticks longest = ticks{1} << (GetParam() % 40);
  event_queue<entry> queue;
  std::set<std::pair<ticks, int>> sorted;
  ticks now = 0;
  for (int number = 0; number < 4000; ++number) {
    // Times repeat, and some are the present one.
    const ticks later = static_cast<ticks>(random() % static_cast<std::uint64_t>(longest));
    const ticks at = now + (random() % 4 == 0 ? 0 : later);
    queue.push({at, number});
    sorted.emplace(at, number);
    for (auto pops = random() % 3; pops > 0 && !sorted.empty(); --pops) {
      const auto [first_at, first] = *sorted.begin();
      sorted.erase(sorted.begin());
      ASSERT_EQ(queue.next(), first_at);
      const entry e = queue.pop();
      ASSERT_EQ(e.at, first_at);
      ASSERT_EQ(e.number, first);
      now = first_at;
    }
    // Time also passes without entries.
    if (!sorted.empty()) now = std::min(now + longest / 8, sorted.begin()->first);
  }
  for (const auto& [at, number] : sorted) {
    ASSERT_EQ(queue.next(), at);
    ASSERT_EQ(queue.pop().number, number);
  }
  EXPECT_EQ(queue.next(), never);
}

INSTANTIATE_TEST_SUITE_P(seeds, event_queues, testing::Range(1, 41));

}  // namespace
}  // namespace sucl::sim
