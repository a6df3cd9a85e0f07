// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Runs a schedule on numbers, in an order drawn by lot: the independent judge of the verifier.
#pragma once

#include "plan/ir/schedule.hpp"

#include <string>

namespace sucl::plan {

/// Runs `s` once; `seed` decides inputs and timing: which channel goes on, when transfers move
/// their data, whether a send is buffered, when ranks start and when, after its end, a rank's
/// buffers are used for other things. Returns what went wrong, or "". The schedule must pass
/// check_form().
std::string interpret(const schedule& s, std::uint64_t seed);

}  // namespace sucl::plan
