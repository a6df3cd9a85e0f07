// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Raising errors inside SuCL.
#pragma once

#include <sucl/error.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace sucl::base {

/// Throws sucl::error with a fact-and-cause and a cure.
[[noreturn]] SUCL_CORE_API void fail(errc code, std::string message, std::string hint = {});

/// Throws errc::configuration: something at `origin`, as in "file sucl.toml:3:7" or "environment
/// SUCL_RULES", is wrong.
[[noreturn]] void refuse(const std::string& origin, const std::string& message,
                         const std::string& hint);

/// The candidate nearest to `word` by edit distance, or "" if none is near enough to be a slip.
SUCL_CORE_API std::string nearest(std::string_view word,
                                  const std::vector<std::string>& candidates);

/// "Did you mean 'x'?" for nearest(), or the list of candidates where none is near.
SUCL_CORE_API std::string did_you_mean(std::string_view word,
                                       const std::vector<std::string>& candidates);

}  // namespace sucl::base
