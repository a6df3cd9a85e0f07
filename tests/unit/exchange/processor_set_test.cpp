// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/exchange/processor_set.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

namespace sucl::core {
namespace {

TEST(processor_set, is_text_and_back) {
  for (const char* text : {"", "0", "0-7,16", "3,5,7-9", "1000-1500,4095", "65535"})
    EXPECT_EQ(processor_set::of(text).text(), text);
}

TEST(processor_set, holds_more_than_a_fixed_cpu_set) {
  processor_set set = processor_set::of("1020-1029");
  EXPECT_EQ(set.count(), 10u);
  EXPECT_TRUE(set.has(1029));
  EXPECT_FALSE(set.has(1030));
  set.add(processor_set::of("1028-2047"));
  EXPECT_EQ(set.text(), "1020-2047");
  EXPECT_EQ(set.count(), 1028u);
}

TEST(processor_set, survives_other_text) {
  EXPECT_EQ(processor_set::of("no numbers").count(), 0u);
  EXPECT_EQ(processor_set::of("4,x").text(), "4");
  EXPECT_EQ(processor_set::of("7-3").count(), 0u);
  EXPECT_EQ(processor_set::of("2-").count(), 0u);
  EXPECT_EQ(processor_set::of("65530-99999999999999999999").count(), 6u);
}

TEST(processor_set, own_are_among_those_of_the_machine) {
  const std::size_t own = processor_set::own().count();
  EXPECT_GE(own, 1u);
  EXPECT_LE(own, static_cast<std::size_t>(sysconf(_SC_NPROCESSORS_CONF)));
}

}  // namespace
}  // namespace sucl::core
