// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the tests of order on devices share.
#pragma once

#include <sucl/sucl.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace sucl::order {

using std::size_t;

inline constexpr size_t n = 5000;

struct rank_fixture {
  sycl::queue queue;     // out of order
  sycl::queue in_order;  // of the same device
  communicator world, in_order_world, other, coarse_world;
  bool gpu = false;
};
extern rank_fixture* g_fixture;

/// Whether the device executes such operations, on its streams.
inline bool are_on_stream(const communicator& comm, kind k, size_t bytes) {
  const auto backend = comm.selected_backend(k, bytes);
  return backend == "kernels" || backend == "nccl" || backend == "rccl";
}

struct device : ::testing::Test {
  rank_fixture& j = *g_fixture;
  const int rank = j.world.rank();
  const int size = j.world.size();
  int sum() const { return size * (size + 1) / 2; }
  void SetUp() override {
    if (!j.gpu) GTEST_SKIP() << "there is no GPU";
  }
};

}  // namespace sucl::order
