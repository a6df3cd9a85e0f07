// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The SYCL platforms and devices of this machine.
#pragma once

#include "base/config/config.hpp"

#include <nlohmann/json.hpp>

namespace sucl::tools {

/// {"implementation", "platforms": [{..., "devices": [...]}], "problem"}; `settings` gives each
/// platform its canonical name.
nlohmann::ordered_json describe_devices(const base::config& settings);

}  // namespace sucl::tools
