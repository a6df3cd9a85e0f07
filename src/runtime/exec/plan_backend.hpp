// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The built-in backend that carries collectives by SuCL's own plans over memory that another
/// backend lends.
#pragma once

#include "runtime/channel.hpp"
#include "runtime/selection.hpp"

#include <string>

namespace sucl::core {

/// Most ranks that a communicator may have for it.
inline constexpr int most_plan_ranks = 64;

/// A channel for one communicator. Collective. `memory` lends the memory, and must outlive it.
/// Throws where there is none; `*obstacle` says why it cannot be used, on every rank alike, though
/// nothing failed.
channel plan_channel(const channel& memory, int rank, int size, std::string* obstacle);

}  // namespace sucl::core
