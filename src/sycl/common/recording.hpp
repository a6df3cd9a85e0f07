// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Queues that record a command graph (SYCL-Graph), which operations are not part of.
#pragma once

#include "sycl/common/state.hpp"

namespace sucl::sycl_layer {

/// Throws errc::unsupported if the queue records, or if an event to wait for is one of a graph.
/// Nothing has been issued yet; where ranks compare arguments the others get the error.
void refuse_recording(communicator_state& state, const ::sycl::queue& queue,
                      const sucl_operation& record, const std::vector<::sycl::event>& deps);

}  // namespace sucl::sycl_layer
