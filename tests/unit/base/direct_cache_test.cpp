// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/direct_cache.hpp"

#include <gtest/gtest.h>

#include <set>
#include <type_traits>

namespace {

using sucl::base::direct_cache;
using sucl::base::key_of;
using sucl::base::spread;

static_assert(std::is_trivially_default_constructible_v<direct_cache<int, 4>>);

TEST(direct_cache, keeps_what_was_put_under_a_key_until_it_is_cleared) {
  direct_cache<int, 16> cache{};
  for (std::uint64_t key = 0; key < 1000; key += 37) {
    cache.slot(key) = static_cast<int>(key) + 1;
    EXPECT_EQ(cache.slot(key), static_cast<int>(key) + 1);
  }
  cache.clear();
  for (std::uint64_t key = 0; key < 1000; ++key) EXPECT_EQ(cache.slot(key), 0);
}

// Buffers of one size, one after the other, as programs have them. What counts is that few fall
// together, whatever the size is: the low bits alone would put all of them into one slot.
TEST(direct_cache, spreads_keys_at_like_distances) {
  for (std::uint64_t distance = 8; distance <= std::uint64_t{1} << 40; distance *= 2) {
    std::set<std::size_t> alone, with_others;
    for (std::uint64_t i = 0; i < 32; ++i) {
      const std::uint64_t at = 0x7f0000000000 + i * distance;
      alone.insert(spread<6>(at));
      with_others.insert(spread<6>(key_of(at, at + 4096, 1024, 3)));
    }
    EXPECT_GE(alone.size(), 10u) << distance;
    EXPECT_GE(with_others.size(), 10u) << distance;
  }
}

TEST(direct_cache, tells_apart_the_numbers_of_a_key) {
  std::set<std::uint64_t> keys;
  for (int a = 0; a < 20; ++a)
    for (int b = 0; b < 20; ++b)
      for (int c = 0; c < 20; ++c) keys.insert(key_of(a, b, c));
  EXPECT_EQ(keys.size(), 8000u);
}

}  // namespace
