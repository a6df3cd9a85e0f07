// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Copies by non-temporal stores give every byte, and no other one, and are seen before what follows
// them.
#include "core/host_ops/nt_copy.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <thread>
#include <vector>

namespace sucl::core {
namespace {

constexpr std::byte untouched{0xee};

std::vector<std::byte> counted(std::uint64_t bytes, std::uint64_t from) {
  std::vector<std::byte> data(bytes);
  for (std::uint64_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>((from + i) % 251);
  return data;
}

TEST(publish, copies_from_and_to_any_address) {
  const auto source = counted(3000, 1);
  for (const std::uint64_t bytes : {0, 1, 63, 64, 65, 127, 128, 200, 2048, 2100})
    for (std::uint64_t to = 0; to < 130; to += 13)
      for (const std::uint64_t from : {0, 1, 8, 64}) {
        std::vector<std::byte> memory(3000, untouched), expected = memory;
        std::memcpy(expected.data() + to, source.data() + from, bytes);
        copy_nontemporal(memory.data() + to, source.data() + from, bytes);
        ASSERT_EQ(memory, expected) << bytes << " bytes from " << from << " to " << to;
      }
}

TEST(publish, is_seen_before_the_flag_that_follows) {
  constexpr std::uint64_t bytes = 4096, rounds = 2000;
  alignas(64) static std::byte memory[bytes];
  std::atomic<std::uint64_t> flag{0}, seen{0};
  std::uint64_t wrong = 0;
  std::thread reader([&] {
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      while (flag.load(std::memory_order_acquire) < round) std::this_thread::yield();
      const auto value = static_cast<std::byte>(round % 251);
      for (const std::byte b : memory) wrong += b != value;
      seen.store(round, std::memory_order_release);
    }
  });
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    const std::vector<std::byte> data(bytes, static_cast<std::byte>(round % 251));
    copy_nontemporal(memory, data.data(), bytes);
    flag.store(round, std::memory_order_release);
    while (seen.load(std::memory_order_acquire) < round) std::this_thread::yield();
  }
  reader.join();
  EXPECT_EQ(wrong, 0u);
}

TEST(publish, is_right_however_often_and_whatever_is_tried_between) {
  nt_store_policy p;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t least =
        i % 2 ? nt_store_policy::min_bytes : nt_store_policy::min_timed_bytes;
    const std::uint64_t bytes = least - 1 + i % 3;
    if (i == 500)
      for (int k = 0; k < 3; ++k) p.note(1000, std::chrono::microseconds(1));
    const auto source = counted(bytes, i);
    std::vector<std::byte> memory(bytes, untouched);
    p.copy(memory.data(), source.data(), bytes);
    ASSERT_EQ(memory, source) << "copy " << i;
  }
}

TEST(publish, goes_past_the_caches_while_ordinary_copies_are_slow) {
  using std::chrono::nanoseconds;
  nt_store_policy p;
  EXPECT_FALSE(p.nontemporal());
  const auto note = [&](std::initializer_list<int> times) {
    for (const int t : times) p.note(65536, nanoseconds(t));
  };
  note({28000, 28000, 3000, 900000, 28000});
  EXPECT_FALSE(p.nontemporal()) << "too few in a row";
  note({28000});
  EXPECT_TRUE(p.nontemporal());
  note({28000, 900000});
  EXPECT_TRUE(p.nontemporal());
  note({7000});
  EXPECT_FALSE(p.nontemporal()) << "a fast one is no accident";
  note({28000, 28000});
  EXPECT_FALSE(p.nontemporal()) << "again it needs three";
}

// What is not timed must not go a slow way for ever.
TEST(publish, lets_short_copies_be_ordinary_where_no_long_ones_come) {
  nt_store_policy p;
  for (int i = 0; i < 3; ++i) p.note(65536, std::chrono::microseconds(28));
  const auto source = counted(4096, 3);
  std::vector<std::byte> memory(source.size());
  EXPECT_TRUE(p.past_caches_for(source.size()));
  for (int i = 0; i < 1000; ++i) p.copy(memory.data(), source.data(), source.size());
  EXPECT_EQ(memory, source);
  EXPECT_FALSE(p.past_caches_for(source.size()));
  EXPECT_TRUE(p.past_caches_for(65536)) << "this one is tried again in time";
  EXPECT_FALSE(p.past_caches_for(nt_store_policy::min_bytes - 1));
}

}  // namespace
}  // namespace sucl::core
