// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "terminal/format.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace sucl::tools {

std::string number_text(double value, int digits) {
  if (value == 0) return "0";
  const int before = static_cast<int>(std::floor(std::log10(std::fabs(value)))) + 1;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", std::max(0, digits - std::max(before, 1)), value);
  return text.data();
}

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  std::string number = number_text(value, value >= 1000 ? 4 : 3);
  if (number.find('.') != std::string::npos) {
    while (number.back() == '0') number.pop_back();
    if (number.back() == '.') number.pop_back();
  }
  return number + " " + units[unit];
}

std::string time_text(double seconds) {
  if (seconds == 0) return "0";
  if (seconds < 1e-6) return number_text(seconds * 1e9) + " ns";
  if (seconds < 1e-3) return number_text(seconds * 1e6) + " us";
  if (seconds < 1) return number_text(seconds * 1e3) + " ms";
  return number_text(seconds) + " s";
}

std::string axis_time_text(double seconds) {
  const double microseconds = seconds * 1e6;
  const auto number = [](double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3g", value);
    return std::string(text.data());
  };
  if (microseconds >= 0.999e6) return number(microseconds / 1e6) + " s";
  if (microseconds >= 0.999e3) return number(microseconds / 1e3) + " ms";
  return number(microseconds) + " \u00b5s";
}

double round_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * 0.999) return factor * power;
  return 10 * power;
}

std::string table(const std::vector<std::string>& names,
                  const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const std::string& name : names) widths.push_back(name.size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  const auto line = [&](const std::vector<std::string>& row) {
    std::string text;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      const bool to_left = i == 0 || names[i].back() == ' ';
      text += (i == 0 ? "" : "  ") + (to_left ? row[i] + blanks : blanks + row[i]);
    }
    return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  };
  std::string text = line(names);
  for (const auto& row : rows) text += line(row);
  return text;
}

}  // namespace sucl::tools
