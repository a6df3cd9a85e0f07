// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Pictures of machines.
#pragma once

#include "sim/model/machine.hpp"

#include <string>

namespace sucl::tools {

/// SVG: the ranks on a circle, the switches within, and the links, whose colour and width say how
/// fast they are. Throws invalid_argument where the machine is no graph, or a large one.
std::string draw_wires(const sim::machine& m);

}  // namespace sucl::tools
