// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What HiCCL's authors measured, to be compared with what the simulator says.
#pragma once

#include <sucl/types.hpp>

#include <string>

namespace sucl::tools {

/// Four bars of HiCCL's figure 8: throughput in GB/s, each with one optimization more. Read off the
/// figure in HiCCL's repository (misc/hiccl_collectives_new.png), to about a hundredth of its axis.
struct measured_bars {
  double direct = 0;
  double hierarchy = 0;
  double striping = 0;  ///< 0: not shown, as all NICs are busy without it
  double pipelining = 0;
};

/// The bars of a collective on four nodes of a machine, by ring or by tree; null where HiCCL has
/// none.
const measured_bars* measured(const std::string& machine, kind what, bool ring);

}  // namespace sucl::tools
