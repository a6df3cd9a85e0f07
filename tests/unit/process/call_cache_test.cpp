// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What is kept of calls that may come again.
#include "core/fast_path/call_cache.hpp"
#include "core/selection/backend_creation.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using sucl::core::call_cache;

sucl_operation message(sucl_kind kind, int peer) {
  sucl_operation o{};
  o.kind = kind;
  o.count = 4;
  o.root = o.source = peer;
  return o;
}

// The caller frees them: a message that names no_rank is asked for as itself, and runs as a group.
TEST(call_cache, keeps_the_parts_of_a_message_that_runs_as_a_group) {
  const sucl::core::backend_instance via{};
  call_cache cache;
  cache.begin(2);
  const sucl_operation asked = message(SUCL_KIND_SENDRECV, 1);
  std::vector<sucl_operation> parts{message(SUCL_KIND_SEND, 1)};
  sucl_operation group = message(SUCL_KIND_GROUP, 0);
  group.parts = parts.data();
  group.part_count = parts.size();
  cache.remember(asked, group, true, via);
  parts[0] = message(SUCL_KIND_RECV, 0);

  const auto* known = cache.find(asked, true);
  ASSERT_NE(known, nullptr);
  ASSERT_EQ(known->record.part_count, 1U);
  EXPECT_EQ(known->record.parts[0].kind, SUCL_KIND_SEND);
  EXPECT_EQ(known->record.parts[0].root, 1);
}

// Another backend may execute the other form, and ranks compare which one was called.
TEST(call_cache, keeps_the_forms_of_a_call_apart) {
  const sucl::core::backend_instance via{};
  call_cache cache;
  cache.begin(2);
  const sucl_operation asked = message(SUCL_KIND_BROADCAST, 1);
  cache.remember(asked, asked, true, via);
  EXPECT_EQ(cache.find(asked, false), nullptr);
  cache.remember(asked, asked, false, via);
  ASSERT_NE(cache.find(asked, false), nullptr);
  EXPECT_FALSE(cache.find(asked, false)->blocking);
  ASSERT_NE(cache.find(asked, true), nullptr);
  EXPECT_TRUE(cache.find(asked, true)->blocking);
}

}  // namespace
