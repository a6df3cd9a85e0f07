// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which device a rank of a test uses.
#pragma once

#include <sucl/sycl.hpp>

#include <cstddef>

namespace sucl::testing {

/// A GPU of its own for each rank while there are enough; the CPU device where there is none.
inline ::sycl::device own_device(int rank) {
  const auto gpus = ::sycl::device::get_devices(::sycl::info::device_type::gpu);
  if (gpus.empty()) return ::sycl::device(::sycl::cpu_selector_v);
  return gpus[static_cast<std::size_t>(rank) % gpus.size()];
}

}  // namespace sucl::testing
