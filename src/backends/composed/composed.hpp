// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// From a composition of the API to a verified plan, whatever executes it.
#pragma once

#include "base/config/determinism.hpp"
#include "core/selection/compile_request.hpp"
#include "plan/ir/schedule.hpp"
#include "plan/passes/waves.hpp"

#include <cstdint>

namespace sucl::core {

/// A plan before every rank has agreed to it.
struct draft_plan {
  plan::schedule schedule;
  type element = type::bytes;
  op reduction = op::none;
  compiled_facts facts;
  std::uint64_t identity = 0;  ///< equal where ranks have compiled the same
};

/// What one node does of a plan, whose messages between nodes something else moves.
struct plan_part {
  plan::node_part what;
  type element = type::bytes;
  op reduction = op::none;
};

/// The plan as ranks that exchange messages execute it. Throws what is wrong with the request, the
/// same on every rank. No communication.
draft_plan compose(const compile_request& r, int rank, int size, base::determinism level);

/// Verifies the plan as it is now, and says what it is. Throws also where ranks would get other
/// bits than was promised.
void prove(draft_plan& d);

}  // namespace sucl::core
