// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Values of settings, which backends get as text. Modules do not link the core, so all of it is
/// here.
#pragma once

#include "base/bounds.hpp"

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sucl::base {

inline constexpr const char* boolean_cure =
    "Write true or false; 1, on and yes, and 0, off and no are the same.";

/// "true", "on", "yes", "1" and their opposites, in either case, with blanks around; nothing for
/// any other text.
inline std::optional<bool> boolean_of(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return std::nullopt;
  std::string word(text.substr(first, text.find_last_not_of(blanks) - first + 1));
  for (char& c : word)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const char* yes : {"true", "on", "yes", "1"})
    if (word == yes) return true;
  for (const char* no : {"false", "off", "no", "0"})
    if (word == no) return false;
  return std::nullopt;
}

/// What is wrong with a value, and the cure.
struct value_problem {
  std::string message;  ///< empty if nothing is
  std::string hint;
};

/// Reads a whole number in decimal digits that is within the range; `number` is untouched if it is
/// not. The message begins with the key.
template <class T>
value_problem read_number(const std::string& key, std::string_view text, bounds<T> range,
                          T& number) {
  T value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = status != std::errc::invalid_argument && end == text.data() + text.size();
  if (whole && status == std::errc{} && range.contain(value)) {
    number = value;
    return {};
  }
  return {key + " = " + std::string(text) +
              (whole ? " is out of range" : " is not a whole number in decimal digits"),
          "Write a number from " + std::to_string(range.low) + " to " + std::to_string(range.high) +
              "."};
}

}  // namespace sucl::base
