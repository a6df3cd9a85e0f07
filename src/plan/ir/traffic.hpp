// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How much each rank sends to each other: the load of a schedule on the network, without time.
#pragma once

#include "plan/ir/schedule.hpp"

#include <cstdint>
#include <vector>

namespace sucl::plan {

/// What goes from one rank to another on one level.
struct flow {
  int from = 0;
  int to = 0;
  int level = 0;
  std::uint64_t bytes = 0;
  std::uint64_t messages = 0;  ///< transfers, or accesses of a peer's memory

  friend bool operator==(const flow&, const flow&) = default;
};

/// Where the data of an instruction of a rank goes; from is -1 if it stays. A message counts at the
/// sender.
flow flow_of(const instruction& i, int rank);

/// All flows, by from, to and level. Messages count once, at the sender; reading a peer's memory is
/// a flow from the peer. Signals are no flows.
std::vector<flow> traffic(const schedule& s);

}  // namespace sucl::plan
