// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What host tasks that execute operations have in common.
#pragma once

#include "sycl/buffers/held_buffers.hpp"
#include "sycl/common/state.hpp"

#ifndef SYCL_IMPLEMENTATION_ACPP

#include "core/operation/operation.hpp"

#include <sucl/error.hpp>

#include <optional>

namespace sucl::sycl_layer {

/// Host tasks of a communicator that may wait side by side: see
/// docs/design/operations/completion.md.
inline constexpr int host_task_threads = 32;

using host_buffers = held_buffers<::sycl::target::host_task>;

/// A command that may throw has been submitted, or, of a graph, begins. end_command() or
/// fail_command() follows.
void begin_command();
void end_command();
/// Throws the failure of a command, which SYCL hands to the handler of its queue when that is
/// asked.
[[noreturn]] void fail_command(const ::sycl::queue& queue, const error_info& failure);

/// Sets the addresses of an operation's buffers in its record and parts.
template <class Operation>
void set(Operation& n, const host_buffers& memory) {
  memory.set(n, [](const auto& access) { return first_byte(access); });
  memory.set_host_memory(n);  // whatever the device: that is what a host task is given
}

/// What is wrong with the addresses that were set: only now is it known where sub-buffers lie.
template <class Operation>
std::optional<error_info> overlap(const Operation& n, const host_buffers& memory,
                                  const communicator_state& state) {
  if (!memory.reads_and_writes() || n.layout.send || n.layout.recv) return std::nullopt;
  try {
    core::check_memory(n.record, state.core().rank(), state.core().size());
    return std::nullopt;
  } catch (const error& e) {
    error_info info = e.info();
    info.operation = core::describe(n.record);
    info.rank = state.core().rank();
    return info;
  }
}

}  // namespace sucl::sycl_layer
#endif
