// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The small languages of configuration files and command lines: sizes, ranges, durations.
///
/// Every parse_ function takes the whole text, ignores blanks around it, and throws sucl::error
/// (errc::invalid_argument) that quotes the text and shows what is wanted. Every print_ function
/// writes what its parse_ function reads back to the same value.
#pragma once

#include <sucl/export.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace sucl::base {

/// A range of whole numbers; both ends belong to it.
struct range {
  std::uint64_t low = 0;
  std::uint64_t high = std::numeric_limits<std::uint64_t>::max();

  bool contains(std::uint64_t value) const noexcept { return low <= value && value <= high; }
  bool everything() const noexcept { return *this == range{}; }
  friend bool operator==(const range&, const range&) = default;
};

/// Text without the blanks around it.
SUCL_CORE_API std::string_view trim(std::string_view text) noexcept;

/// The trimmed parts of a list; an empty text has none.
SUCL_CORE_API std::vector<std::string> split(std::string_view text, char separator);

/// The parts, with `between` between them.
SUCL_CORE_API std::string join(const std::vector<std::string>& parts, std::string_view between);

/// Whether a quoted string of TOML or JSON can hold the text as it is: no quotes, backslashes or
/// control characters.
SUCL_CORE_API bool is_plain(std::string_view text) noexcept;

/// A whole number, decimal, not negative.
SUCL_CORE_API std::uint64_t parse_number(std::string_view text);

/// Bytes: "4", "64Ki", "1Mi", "2GiB". Units are K, M, G and T in either case with an optional "i",
/// "B" or "iB"; all are powers of two, so that "64K", "64KB" and "64Ki" are the same.
SUCL_CORE_API std::uint64_t parse_bytes(std::string_view text);
/// Bytes that may be negative, as in a threshold.
SUCL_CORE_API std::int64_t parse_signed_bytes(std::string_view text);
SUCL_CORE_API std::string print_bytes(std::uint64_t bytes);  ///< as in "64Ki"; always exact
SUCL_CORE_API std::string print_signed_bytes(std::int64_t bytes);

/// "2..8", "..8", "2..", "8" (exactly 8) or "*" (everything). Both ends belong to the range.
SUCL_CORE_API range parse_range(std::string_view text);
SUCL_CORE_API std::string print_range(const range& r);
/// The same with sizes: "4Ki..64Ki".
SUCL_CORE_API range parse_byte_range(std::string_view text);
SUCL_CORE_API std::string print_byte_range(const range& r);

/// Sizes for a tool to go through: "4:64Mi" doubles from 4 while it is at most 64Mi, "4:64Mi:4"
/// goes in factors of 4, "0,4,1Ki:1Mi" joins several.
SUCL_CORE_API std::vector<std::uint64_t> parse_byte_sequence(std::string_view text);

/// A time: "30" and "30s" are seconds; also ns, us, ms, min and h. Decimals are allowed: "1.5s".
SUCL_CORE_API std::chrono::nanoseconds parse_duration(std::string_view text);
SUCL_CORE_API std::string print_duration(std::chrono::nanoseconds time);  ///< as in "500ms"

/// A number with so many decimals, "1.250", or of at most so many digits, "1.25", as in "%.3f" and
/// "%.3g", but with a point in every locale that the program may have chosen: files are the same.
SUCL_CORE_API std::string print_fixed(double value, int decimals);
SUCL_CORE_API std::string print_short(double value, int digits);

/// "true", "on", "yes", "1" and their opposites, in either case.
SUCL_CORE_API bool parse_boolean(std::string_view text);

}  // namespace sucl::base
