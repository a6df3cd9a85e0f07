// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How two NVIDIA GPUs are linked.
#pragma once

#include "backends/device_kernels/memory/device.hpp"

#include <sucl/export.hpp>

namespace sucl::core {

/// Whether NVIDIA's management library says that these two GPUs reach each other over NVLink. They
/// need not be visible to this process. False where there is no such library.
SUCL_CORE_API bool linked_by_nvlink(const kernel_device::identity_type& one,
                                    const kernel_device::identity_type& other) noexcept;

}  // namespace sucl::core
