// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sycl/common/pending_copies.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <stdexcept>
#include <thread>

namespace {

using namespace std::chrono_literals;
using sucl::sycl_layer::pending_copies;

void nothing() {}

void write(std::uint32_t& word, std::uint32_t value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}

TEST(pending_copies, are_waited_for) {
  pending_copies copies;
  copies.wait(nothing);  // there is none
  std::uint32_t first = 6, second = 0;
  copies.add(&first, 7);
  copies.add(&second, 1);
  auto waits = std::async(std::launch::async, [&] { copies.wait(nothing); });
  write(second, 1);
  EXPECT_EQ(waits.wait_for(50ms), std::future_status::timeout);
  write(first, 7);
  waits.get();
}

TEST(pending_copies, are_done_whatever_their_words_become_later) {
  pending_copies copies;
  std::uint32_t reused = 3, wraps = 0xffff'ffff;
  copies.add(&reused, 4);
  copies.add(&wraps, 0);
  write(reused, 9);
  write(wraps, 2);
  copies.wait(nothing);
}

TEST(pending_copies, later_ones_are_not_waited_for) {
  pending_copies copies;
  std::uint32_t now = 0, later = 0;
  copies.add(&now, 1);
  auto waits = std::async(std::launch::async, [&] { copies.wait(nothing); });
  std::this_thread::sleep_for(20ms);
  copies.add(&later, 1);
  write(now, 1);
  waits.get();
  write(later, 1);
}

TEST(pending_copies, are_given_up_where_a_check_throws) {
  pending_copies copies;
  std::uint32_t never = 0;
  copies.add(&never, 1);
  int checks = 0;
  const auto fail = [&] {
    if (++checks == 2) throw std::runtime_error("the device has failed");
  };
  EXPECT_THROW(copies.wait(fail), std::runtime_error);
  write(never, 1);
  copies.wait(fail);
  EXPECT_EQ(checks, 2);
}

}  // namespace
