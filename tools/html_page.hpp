// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Pages that need no network and no other file: a text of the program with data in it.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace sucl::tools {

/// The page with `data` in place of its mark "@DATA@".
inline std::string fill_page(std::string_view page, const nlohmann::json& data) {
  constexpr std::string_view mark = "@DATA@";
  const auto at = page.find(mark);
  std::string text(page.substr(0, at));
  // A script of a page ends at the first "</script>", wherever it stands.
  for (const char c : data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
    text += c == '<' ? "\\u003c" : std::string(1, c);
  return text += page.substr(at + mark.size());
}

}  // namespace sucl::tools
