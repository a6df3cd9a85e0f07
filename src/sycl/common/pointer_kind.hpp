// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Where pointers point, on devices with native streams.
#pragma once

#include <sucl/abi/backend.h>

#include <optional>

namespace sucl::sycl_layer {

/// The kind of memory at an address, by CUDA's driver: a fifth of the time that SYCL's question
/// takes, which every call queries twice. Nothing where the driver does not say, or there is none.
std::optional<sucl_memory> memory_by_driver(const void* pointer) noexcept;

}  // namespace sucl::sycl_layer
