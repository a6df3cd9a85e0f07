// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The members of a communicator become part of a larger job.
#pragma once

#include "core/context/communicator_context.hpp"
#include "core/control/launch.hpp"

#include <string>

namespace sucl::core {

/// Agrees on a job of the members, which keep their ranks, and of `joiners` more processes; returns
/// how this one joins it, by the id that rank 0 has passed. Collective. What is wrong on any rank
/// is thrown on all of them.
launch agree_to_grow(communicator_context& c, const std::string& id, int joiners);

}  // namespace sucl::core
