// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Plots, which Python draws.
#pragma once

#include "launcher/environment.hpp"

#include <string>

namespace sucl::tools {

/// Draws the results in `json` into `svg`. Returns "" or why it could not, and what to do.
std::string draw(const environment& env, const std::string& json, const std::string& svg);

}  // namespace sucl::tools
