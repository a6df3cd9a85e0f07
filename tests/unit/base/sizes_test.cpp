// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/sizes.hpp"

#include <gtest/gtest.h>

#include <array>

namespace sucl::base {
namespace {

constexpr std::uint64_t half = std::uint64_t{1} << 63;

TEST(sizes, products_and_sums_do_not_wrap) {
  EXPECT_EQ(product(3, 4), 12u);
  EXPECT_EQ(product(half, 2), unlimited);
  EXPECT_EQ(product(half, 0), 0u);
  EXPECT_EQ(product(std::uint64_t{1} << 61, 8), unlimited);
  EXPECT_EQ(product(half, 2, 0), 0u);
  EXPECT_EQ(product(1 << 20, 1 << 20, std::uint64_t{1} << 40), unlimited);
  EXPECT_EQ(sum(half, half), unlimited);
  EXPECT_EQ(sum(1, 2), 3u);
  EXPECT_EQ(round_up(1, 4096), 4096u);
  EXPECT_EQ(round_up(4096, 4096), 4096u);
  EXPECT_EQ(round_up(unlimited - 5, 4096), unlimited);
}

TEST(sizes, bytes_beyond_any_address_space_are_refused) {
  EXPECT_EQ(bytes_of(5, 8, 3), 120u);
  EXPECT_EQ(bytes_of(max_bytes, 1), max_bytes);
  for (const auto& [count, size, blocks] :
       {std::array<std::uint64_t, 3>{half, 1, 1}, {half, 2, 1}, {1, half, 2}, {4, half / 2, 8}})
    try {
      bytes_of(count, size, blocks);
      ADD_FAILURE() << count << " * " << size << " * " << blocks;
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_count);
    }
}

TEST(sizes, parts_that_reach_beyond_lie_not_within) {
  EXPECT_TRUE(lies_within(100, 28, 100, 28));
  EXPECT_TRUE(lies_within(128, 0, 100, 28));
  EXPECT_FALSE(lies_within(100, 29, 100, 28));
  EXPECT_FALSE(lies_within(99, 1, 100, 28));
  EXPECT_FALSE(lies_within(120, unlimited, 100, 28));
}

}  // namespace
}  // namespace sucl::base
