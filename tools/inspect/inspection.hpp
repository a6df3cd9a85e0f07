// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What `sucl info` finds out about modules, for others too.
#pragma once

#include "command.hpp"
#include "launcher/environment.hpp"

#include "base/config/config.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace sucl::tools {

/// Of a string.
inline std::string text(const nlohmann::ordered_json& value) { return value.get<std::string>(); }

/// Loads one module in a process of its own: {"found", "description", "problem": {"message",
/// "hint"}, ...}. See probe.cpp for the arguments.
nlohmann::ordered_json probe_module(const words& arguments, const variable_changes& variables);

/// The same for a backend of the configuration.
nlohmann::ordered_json probe_backend(const base::backend_entry& backend);

}  // namespace sucl::tools
