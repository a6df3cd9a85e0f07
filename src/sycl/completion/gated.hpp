// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Operations that go through the host, for AdaptiveCpp on devices with native streams.
#pragma once

#include "sycl/common/state.hpp"

#ifdef SYCL_IMPLEMENTATION_ACPP

namespace sucl::sycl_layer {

/// As start(). The progress thread polls the dependencies of the operation, executes it,
/// and opens the gate that the returned event stands for; or this thread does, and waits.
::sycl::event start_gated(communicator_state& state, ::sycl::queue& queue,
                          const sucl_operation& record, const core::layouts& layout,
                          const std::vector<buffer_use>& buffers,
                          const std::vector<::sycl::event>& deps, bool blocking);

}  // namespace sucl::sycl_layer
#endif
