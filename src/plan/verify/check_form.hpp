// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The part of verification that looks at one instruction at a time.
#pragma once

#include "plan/verify/verify.hpp"

namespace sucl::plan {

/// Checks fields, spaces, bounds, alignment and write permission of every instruction.
verdict check_form(const schedule& s);

}  // namespace sucl::plan
