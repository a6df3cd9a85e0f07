// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Operations that a backend orders on the queue's own stream.
#pragma once

#include "sycl/common/state.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace sucl::sycl_layer {

/// As start(), by one native command; nothing if the device has no native streams or the operation
/// must go through the host.
std::optional<::sycl::event> start_on_stream(communicator_state& state, ::sycl::queue& queue,
                                             const sucl_operation& record,
                                             const core::layouts& layout,
                                             const std::vector<buffer_use>& buffers,
                                             const std::vector<::sycl::event>& deps);

/// Gives up a reference to a communicator in a thread of the SYCL runtime. If it was the last one
/// the communicator ends later, in a thread of the program: its end waits for commands.
void retire(std::shared_ptr<communicator_state> state);
/// Ends the communicators that wait for that.
void collect_retired();

}  // namespace sucl::sycl_layer
