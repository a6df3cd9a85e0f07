// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// From a composition of the API to a plan that the executor runs.
#pragma once

#include "backends/shm_plan/plans/compiled.hpp"
#include "base/config/determinism.hpp"
#include "core/selection/compile_request.hpp"
#include "plan/ir/schedule.hpp"

#include <cstdint>
#include <memory>

namespace sucl::core {

/// A plan before every rank has agreed to it.
struct draft_plan {
  plan::schedule schedule;
  op reduction = op::none;
  compiled_facts facts;
  std::uint64_t identity = 0;  ///< equal where ranks have compiled the same
};

/// Lowers and verifies. Throws what is wrong with the request, also where ranks would get other
/// bits than `level` promises. No communication.
draft_plan compile_here(const compile_request& r, const placement& where,
                        base::determinism level = base::determinism::ranks);

/// The executor's form, without scratch.
std::unique_ptr<compiled_code> code_of(const draft_plan& d, const compile_request& r,
                                       const placement& where);

}  // namespace sucl::core
