// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Ranges of the numbers that files and variables hold. Every number is checked where it is read:
/// what comes after may then add, multiply, and take memory by it.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <type_traits>

namespace sucl::base {

/// The values that a number may have; both ends belong to them.
template <class T>
struct bounds {
  T low;
  T high;
  /// False for what is no number (NaN).
  constexpr bool contain(T value) const noexcept { return value >= low && value <= high; }
};

/// A number as an error shows it.
SUCL_CORE_API std::string bounds_text(double value);
SUCL_CORE_API std::string bounds_text(std::uint64_t value);
SUCL_CORE_API std::string bounds_text(std::int64_t value);

/// Throws unless `value` is within `range`: with `location` (as in "file m.toml:3:7"), the key, the
/// value, and the range. Both words may be empty where the catcher adds them.
template <class T>
void check_bounds(const std::string& location, const std::string& key, T value, bounds<T> range,
                  errc code = errc::configuration) {
  if (range.contain(value)) return;
  const std::string message =
      (key.empty() ? key : key + " = ") + bounds_text(value) + " is out of range";
  const std::string hint =
      "Write a number from " + bounds_text(range.low) + " to " + bounds_text(range.high) + ".";
  if (code == errc::configuration) refuse(location, message, hint);
  fail(code, location.empty() ? message : location + ": " + message, hint);
}

}  // namespace sucl::base
