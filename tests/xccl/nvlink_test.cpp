// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The link of two GPUs, by a library that plays NVML; see fake_nvml.cpp.
#include "backends/device_kernels/memory/nvlink.hpp"

#include <gtest/gtest.h>

namespace sucl::core {
namespace {

kernel_device::identity_type gpu(std::uint8_t number) {
  return {0xa0, 0xb1, 0xc2, 0xd3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, number};
}

TEST(nvlink, is_what_the_management_library_says) {
  EXPECT_TRUE(linked_by_nvlink(gpu(1), gpu(2)));
  EXPECT_TRUE(linked_by_nvlink(gpu(2), gpu(1)));
  EXPECT_FALSE(linked_by_nvlink(gpu(1), gpu(3))) << "they reach each other some other way";
  EXPECT_FALSE(linked_by_nvlink(gpu(1), gpu(4))) << "of another host";
  EXPECT_FALSE(linked_by_nvlink({}, gpu(1)));
}

}  // namespace
}  // namespace sucl::core
