// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Log lines on standard error: "sucl[3] warn registry: ...".
///
/// The level is SUCL_LOG (error, warn, info or debug; warn if it is not set) until
/// set_log_level(). Every line is one write, so that lines of several ranks do not mix. Any thread
/// may log at any time.
#pragma once

#include <sucl/export.hpp>

#include <locale>
#include <sstream>
#include <string_view>

namespace sucl::base {

/// How much a line matters; the numbers are those of SUCL_LOG_ERROR and so on.
enum class log_level : int { error = 0, warn = 1, info = 2, debug = 3 };

SUCL_CORE_API const char* name(log_level level) noexcept;  ///< as in "warn"

/// The level of a name; throws sucl::error (errc::invalid_argument) for an unknown one.
SUCL_CORE_API log_level parse_log_level(std::string_view text);

/// Whether lines of this level are written: one load and one comparison.
SUCL_CORE_API bool log_enabled(log_level level) noexcept;

SUCL_CORE_API void set_log_level(log_level level) noexcept;

/// The rank that lines begin with from now on; "-" before the first call.
SUCL_CORE_API void set_rank(int rank) noexcept;

/// Writes a line if its level is enabled. Line breaks inside `text` become blanks.
SUCL_CORE_API void log_text(log_level level, std::string_view component,
                            std::string_view text) noexcept;

/// The same for parts that are streamed one after the other, and only if the level is enabled.
template <class... Parts>
void log(log_level level, std::string_view component, const Parts&... parts) {
  if (!log_enabled(level)) return;
  std::ostringstream text;
  text.imbue(std::locale::classic());
  (text << ... << parts);
  log_text(level, component, text.str());
}

}  // namespace sucl::base
