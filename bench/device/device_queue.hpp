// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The queue that a rank measures on.
#pragma once

#include <sucl/sycl.hpp>

#include <string>
#include <vector>

namespace sucl::bench {

/// A device of the kind that `kinds`, "cpu" or "gpu", gives to a rank of a node, from its start
/// again where there are more ranks; without kinds a GPU if there is one. Each rank that wants a
/// GPU gets the next one. Throws errc::unavailable.
sycl::device choose_device(const std::vector<std::string>& kinds, int local_rank);

/// In order as cheap as the implementation has it.
sycl::queue make_queue(const sycl::device& device, bool in_order);

/// The number of a CUDA device, or -1.
int device_number(const sycl::queue& queue);

/// The stream of a CUDA device that an in-order queue puts its commands on; null where there is
/// none to be had.
void* stream_of(const sycl::queue& queue);

}  // namespace sucl::bench
