// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The backends that are part of the library.
#pragma once

#include "core/selection/built_in.hpp"

#include <sucl/export.hpp>

namespace sucl::core {

/// Each after those that it uses.
SUCL_CORE_API const built_in_list& built_ins();

}  // namespace sucl::core
