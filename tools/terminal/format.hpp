// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Human-readable numbers and tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sucl::tools {

/// As in "4 KiB", "1.37 MiB": three digits.
std::string bytes_text(std::uint64_t bytes);

/// As in "4.1 us", "12.3 ms".
std::string time_text(double seconds);
/// A round time for the axis of a picture, as python/sucl/plot/style.py writes it: "20 µs".
std::string axis_time_text(double seconds);

/// As in "1.234", "123": as many significant digits.
std::string number_text(double value, int digits = 3);

/// The round number (1, 2 or 5 times a power of ten) that is not below `least`.
double round_step(double least);

/// Rows under a line of names. The first column is set to the left, and columns whose name ends in
/// a blank; the others to the right.
std::string table(const std::vector<std::string>& names,
                  const std::vector<std::vector<std::string>>& rows);

}  // namespace sucl::tools
