// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Writing a field that is cut into boxes.
#pragma once

#include "common/context.hpp"
#include "common/grid/grid.hpp"

#include <string>
#include <vector>

namespace apps {

/// Writes a field as VTK image data (.vti), which ParaView opens. Throws std::runtime_error.
void write_vti(const std::string& path, const extents& size, const std::vector<float>& values);

/// Gathers the parts of a field, each with its last dimension varying fastest, and has rank 0 write
/// it to the file that the command line names. Collective.
void write_field(context& c, const rank_grid& grid, const std::vector<float>& mine);

}  // namespace apps
