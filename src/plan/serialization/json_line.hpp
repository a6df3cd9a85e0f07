// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Lines of a JSON text, which the values that are parsed from it do not have.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sucl::plan {

/// Where a value is in JSON: a member or an element of what is above it; the top has nothing above.
struct json_path {
  const json_path* above = nullptr;
  std::string_view key;   ///< of a member; empty for an element
  std::size_t index = 0;  ///< of an element

  json_path member(std::string_view name) const { return {this, name, 0}; }
  json_path element(std::size_t i) const { return {this, {}, i}; }
};

/// As in "ranks[3].channels[0]"; empty for the top.
std::string to_text(const json_path& path);

/// The line, from 1, in which the value of this path begins, or ends if it is a number or text;
/// 0 if there is none. Reads the text again, so it is for errors.
std::size_t line_in_json(std::string_view text, const std::string& path);

}  // namespace sucl::plan
