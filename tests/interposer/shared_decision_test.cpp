// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/online/shared_decision.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <thread>

namespace sucl::tune {
namespace {

// Zeroed, as shared memory is.
struct shared_box {
  std::unique_ptr<std::byte[]> memory = std::make_unique<std::byte[]>(shared_decisions::bytes);
  shared_decisions box{memory.get()};
};

TEST(shared_decision, holds_from_the_first_call_that_no_rank_has_started) {
  shared_box shared;
  shared_decision& b = *shared.box.find(7);
  for (std::uint64_t n = 0; n < 5; ++n) EXPECT_FALSE(b.join(n));
  EXPECT_FALSE(b.join(2));  // another rank is behind
  b.submit({1, 2}, 2, 0.97);
  EXPECT_FALSE(b.join(5));
  b.submit({1, 3}, 2, 0.97);
  EXPECT_EQ(b.slowest(), (std::array<double, 2>{1, 3}));
  EXPECT_FALSE(b.join(3));
  EXPECT_FALSE(b.join(5)) << "it had been started without";
  EXPECT_EQ(b.join(6), true);
  b.clear();
  EXPECT_FALSE(b.join(6));
}

TEST(shared_decision, goes_by_the_slowest_rank) {
  shared_box shared;
  shared_decision& b = *shared.box.find(1);
  b.submit({4, 1}, 2, 0.97);
  b.submit({1, 2}, 2, 0.97);
  EXPECT_EQ(b.join(0), false);
}

// Ranks at their own speeds go the same choice in every call.
TEST(shared_decision, is_the_same_for_all) {
  constexpr int ranks = 4, calls = 3000;
  for (unsigned seed = 0; seed < 20; ++seed) {
    shared_box shared;
    std::vector<std::vector<int>> ways(ranks, std::vector<int>(calls));
    std::array<std::atomic<unsigned>, ranks> at{};
    std::vector<std::thread> threads;
    for (unsigned r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        std::mt19937 random(seed * 31 + r);
        shared_decision& b = *shared.box.find(99);
        const auto voting = random() % 500;
        for (unsigned n = 0; n < calls; ++n) {
          // Some calls ahead, as with requests that are waited for at some time.
          at[r] = n;
          while (std::any_of(at.begin(), at.end(), [&](auto& other) { return other + 50 < n; }))
            std::this_thread::yield();
          if (n == voting) b.submit({1.0, 2.0}, ranks, 0.97);
          const auto agreed = b.join(n);
          ways[r][n] = agreed ? static_cast<int>(*agreed) : -1;
          if (random() % 64 == 0) std::this_thread::yield();
        }
        at[r] = calls;
      });
    for (auto& t : threads) t.join();
    for (const auto& w : ways) EXPECT_EQ(w, ways[0]) << seed;
    EXPECT_EQ(ways[0].back(), 1);
  }
}

TEST(shared_decisions, gives_each_key_its_own_until_it_is_full) {
  shared_box shared;
  std::set<shared_decision*> all;
  for (std::uint64_t key = 1; key <= shared_decisions::slots; ++key)
    all.insert(shared.box.find(key));
  EXPECT_EQ(all.size(), shared_decisions::slots);
  EXPECT_EQ(all.count(nullptr), 0u);
  EXPECT_EQ(shared.box.find(5000), nullptr);
  EXPECT_NE(shared.box.find(3), nullptr);
  EXPECT_EQ(shared_decisions().find(1), nullptr);
}

}  // namespace
}  // namespace sucl::tune
