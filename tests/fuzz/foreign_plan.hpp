// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What must hold for a plan of another library.
#pragma once

#include "fuzz/target.hpp"
#include "plan/verify/verify.hpp"

namespace sucl::fuzz {

/// There is a verdict on it.
inline void check_foreign_plan(const plan::schedule& s) {
  if (plan::instruction_count(s) > 20000) return;
  try {
    const plan::verdict v = plan::verify(s, plan::proof_limits{1'000'000, 100'000'000});
    require(v || !v.message.empty(), "a fault has a message");
  } catch (const error& e) {
    require(e.code() == errc::out_of_memory, "only a proof that is too large fails");
  }
}

}  // namespace sucl::fuzz
