// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// All steps of an operation on all ranks as one plan, which the verifier can prove.
#pragma once

#include "backends/hierarchical/steps.hpp"
#include "plan/ir/schedule.hpp"

#include <vector>

namespace sucl::testing {

/// An operation on ranks that are grouped into nodes or islands.
struct composed_operation {
  plan::problem what;        ///< of a barrier an allgather of one element a rank, in place
  bool barrier = false;      ///< whether it is one: the elements are what has come to each rank
  std::vector<int> node_of;  ///< one entry a rank
  bool islands = false;
  core::step_division how;
};

/// What a fault in the composition could be.
enum class damage { none, no_step, no_order };

/// The plan: each step is messages between all that need them, on the channel of its communicator;
/// a rank goes on to a wave once its part of the one before is done. `of` leaves out a step
/// between nodes, or lets waves of a rank begin without waiting.
plan::schedule composition_of(const composed_operation& operation, damage of = damage::none);

}  // namespace sucl::testing
