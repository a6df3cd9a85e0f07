// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/symbolic/proof_cost.hpp"

#include "base/error.hpp"

#include <string>

namespace sucl::plan {
namespace {

[[noreturn]] void refuse(std::uint64_t most, const char* what) {
  base::fail(errc::out_of_memory,
             "the proof of the plan takes more than " + std::to_string(most) + " " + what,
             "Take fewer ranks, channels or instructions, or allow more: sucl plan has --effort.");
}

}  // namespace

void proof_cost::refuse_steps() const { refuse(m_limits.steps, "steps"); }
void proof_cost::refuse_bytes() const { refuse(m_limits.bytes, "bytes of memory"); }

}  // namespace sucl::plan
