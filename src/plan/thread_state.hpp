// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the verifier knows of a channel while it executes it.
#pragma once

#include "plan/order.hpp"

#include <cstdint>
#include <vector>

namespace sucl::plan {

/// A transfer that a channel started.
struct started {
  std::uint32_t pc = 0;
  bool done = false;
  clocks::snapshot published;  ///< of a receive: by its sender
};

/// A channel of a rank in execution.
struct thread_state {
  std::int32_t rank = 0, channel = 0;
  const plan::channel* code = nullptr;
  std::uint32_t pc = 0;
  std::uint32_t finished = 0;    // transfers finished by fences
  std::uint32_t done_until = 0;  // transfers before this are matched
  bool queued = true;
  std::vector<started> transfers;
  memory::cursor hints[space_count];  // where it was last in each space
};

}  // namespace sucl::plan
