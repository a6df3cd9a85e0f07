// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which machine a process runs on.
#pragma once

#include <string>

namespace sucl::core {

/// The name of this machine; "unknown" where it has none.
std::string host_name();

/// Equal for processes that see the same kernel and the same process ids.
std::string host_identity();

}  // namespace sucl::core
