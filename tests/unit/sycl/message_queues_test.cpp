// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sycl/completion/message_queues.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <vector>

namespace {

using sucl::sycl_layer::message_queues;

TEST(message_queues, hold_up_the_begin_of_no_message_until_another_one_ends) {
  message_queues queues;
  std::set<std::size_t> before, after;
  for (int i = 0; i < 26; ++i) {
    const auto c = queues.enter(i % 2 != 0);
    before.insert(c.before);
    after.insert(c.after);
  }
  for (const std::size_t q : after) EXPECT_EQ(before.count(q), 0u) << q;
  for (const std::size_t q : before) EXPECT_LT(q, message_queues::all);
  for (const std::size_t q : after) EXPECT_LT(q, message_queues::all);
}

TEST(message_queues, hold_up_nothing_that_waits_for_nothing_before_a_message) {
  message_queues queues;
  std::set<std::size_t> at_once, waiting;
  for (int i = 0; i < 26; ++i) {
    at_once.insert(queues.enter(false).before);
    waiting.insert(queues.enter(true).before);
  }
  for (const std::size_t q : waiting) EXPECT_EQ(at_once.count(q), 0u) << q;
}

TEST(message_queues, are_not_shared_while_some_are_free) {
  message_queues queues;
  std::vector<message_queues::choice> taken;
  std::set<std::size_t> after;
  for (std::size_t i = 0; i < message_queues::ends; ++i) {
    taken.push_back(queues.enter(false));
    after.insert(taken.back().after);
  }
  EXPECT_EQ(after.size(), message_queues::ends);
  queues.leave(taken[3]);
  EXPECT_EQ(queues.enter(false).after, taken[3].after);
}

}  // namespace
