// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Whom the backend ipc allows to read a process where the system lets only relatives do so.
#include "../../../backends/ipc/tracer.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

namespace sucl::ipc {
namespace {

TEST(tracer, is_the_peer_itself_if_there_is_one) {
  EXPECT_EQ(tracer_of({ancestry{40, 30, 20}}), 40);
  EXPECT_EQ(tracer_of({}), 0);
}

TEST(tracer, is_the_nearest_that_started_all_peers) {
  EXPECT_EQ(tracer_of({ancestry{40, 30, 20}, ancestry{41, 30, 20}}), 30);
  // One of them was started by a script.
  EXPECT_EQ(tracer_of({ancestry{40, 35, 30, 20}, ancestry{41, 30, 20}, ancestry{42, 30, 20}}), 30);
  EXPECT_EQ(tracer_of({ancestry{40, 30, 20}, ancestry{41, 31, 20}}), 20);
}

TEST(tracer, is_none_where_peers_are_no_relatives) {
  EXPECT_EQ(tracer_of({ancestry{40, 30}, ancestry{41, 31}}), 0);
  EXPECT_EQ(tracer_of({ancestry{}, ancestry{41, 31}}), 0);
}

TEST(tracer, knows_its_own_ancestry) {
  const ancestry own = own_ancestry();
  EXPECT_EQ(own[0], getpid() > 1 ? getpid() : 0);
  EXPECT_EQ(own[1], getppid() > 1 && getpid() > 1 ? getppid() : 0);
}

}  // namespace
}  // namespace sucl::ipc
