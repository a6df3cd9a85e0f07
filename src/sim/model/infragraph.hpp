// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// InfraGraph's infrastructures.
#pragma once

#include "sim/model/machine.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace sucl::sim::file {

/// The machine of the components of all device instances (a component that is a device is replaced
/// by its own components), joined by the edges of the devices and of the infrastructure. Throws
/// errc::configuration.
machine from_infragraph(const nlohmann::json& root, const std::string& origin,
                        const std::string& name);

}  // namespace sucl::sim::file
