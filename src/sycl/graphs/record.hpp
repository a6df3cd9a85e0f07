// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Operations as nodes of a command graph (SYCL-Graph).
#pragma once

#include "sycl/common/recording.hpp"
#include "sycl/common/resolve.hpp"

namespace sucl::sycl_layer {

/// Takes a call into the graph that its queue records, in which the event that is returned stands
/// for it. Each replay of the graph issues and awaits the operation. Only where is_recording().
::sycl::event record(communicator_state& state, ::sycl::queue& queue, const resolved& call,
                     const std::vector<::sycl::event>& deps);

}  // namespace sucl::sycl_layer
