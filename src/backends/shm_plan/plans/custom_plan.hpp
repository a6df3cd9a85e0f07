// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// From a composition of the API to a plan that the executor runs.
#pragma once

#include "backends/composed/composed.hpp"
#include "backends/shm_plan/plans/compiled.hpp"

#include <memory>

namespace sucl::core {

/// Lowers and verifies. Throws what is wrong with the request, also where ranks would get other
/// bits than `level` promises. No communication.
draft_plan compile_here(const compile_request& r, const placement& where,
                        base::determinism level = base::determinism::ranks);

/// The executor's form, without scratch.
std::unique_ptr<compiled_code> code_of(const draft_plan& d, const compile_request& r,
                                       const placement& where);

}  // namespace sucl::core
