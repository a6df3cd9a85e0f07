// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Where the scratch of a schedule lies, so that many work groups can share its work.
#pragma once

#include "plan/ir/schedule.hpp"

namespace sucl::core {

/// The same schedule with other offsets in scratch. Where that can be, what is copied or combined
/// lies a multiple of a large power of two from where it goes, whatever the sizes of messages are:
/// that is what work groups can divide among them (see kernels::plan_args::period). Takes at most
/// as much scratch again as the rank with the most had, and 1 MiB.
plan::schedule align_scratch(plan::schedule s);

}  // namespace sucl::core
