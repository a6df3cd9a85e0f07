// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/support/postponed_ends.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace {

using namespace sucl::core;

TEST(postponed_ends, are_called_at_once_where_nothing_depends_on_the_thread) {
  bool ended = false;
  end_or_postpone([&] { ended = true; });
  EXPECT_TRUE(ended);
}

TEST(postponed_ends, are_left_to_another_thread) {
  std::thread::id by;
  std::thread([&] {
    postpone_ends_of_this_thread();
    end_or_postpone([&] { by = std::this_thread::get_id(); });
    end_postponed();  // does nothing in this thread
    EXPECT_EQ(by, std::thread::id());
  }).join();
  EXPECT_EQ(by, std::thread::id());
  end_postponed();
  EXPECT_EQ(by, std::this_thread::get_id());
}

TEST(postponed_ends, are_called_once_each) {
  int ends = 0;
  std::thread([&] {
    postpone_ends_of_this_thread();
    for (int i = 0; i < 3; ++i) end_or_postpone([&] { ++ends; });
  }).join();
  end_postponed();
  end_postponed();
  EXPECT_EQ(ends, 3);
}

}  // namespace
