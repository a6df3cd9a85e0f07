// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include "base/error.hpp"
#include "base/setting_values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace sucl::base {
namespace {

constexpr const char* size_hint =
    "Write a whole number of bytes, alone or with Ki, Mi, Gi or Ti: 64Ki.";
constexpr const char* duration_hint =
    "Write seconds, or a number with ns, us, ms, s, min or h: 30, 1.5s, 500ms.";

[[noreturn]] void refuse(std::string_view text, const char* what, const char* hint) {
  fail(errc::invalid_argument, "'" + std::string(text) + "' is not " + what, hint);
}

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = lower(c);
  return result;
}

// The digits that text begins with, taken off it; nothing if there are none or too many.
std::optional<std::uint64_t> take_number(std::string_view& text) noexcept {
  std::uint64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<unsigned> shift_of_unit(std::string_view unit) {
  const std::string word = lower(unit);
  if (word.empty() || word == "b") return 0;
  constexpr std::string_view letters = "kmgt";
  const auto at = letters.find(word.front());
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = std::string_view(word).substr(1);
  if (!rest.empty() && rest != "i" && rest != "b" && rest != "ib") return std::nullopt;
  return 10 * (static_cast<unsigned>(at) + 1);
}

using number_parser = std::uint64_t (*)(std::string_view);
using number_printer = std::string (*)(std::uint64_t);

range parse_range_of(std::string_view text, number_parser parse) {
  text = trim(text);
  if (text == "*") return {};
  const auto dots = text.find("..");
  if (dots == std::string_view::npos) {
    const std::uint64_t only = parse(text);
    return {only, only};
  }
  const std::string_view low = trim(text.substr(0, dots));
  const std::string_view high = trim(text.substr(dots + 2));
  range result;
  if (low.empty() && high.empty())
    refuse(text, "a range", "Write one end at least, as in 4..64, or * for everything.");
  if (!low.empty()) result.low = parse(low);
  if (!high.empty()) result.high = parse(high);
  if (result.low > result.high)
    fail(errc::invalid_argument, "the range '" + std::string(text) + "' is empty",
         "Write the smaller end first.");
  return result;
}

std::string print_range_of(const range& r, number_printer print) {
  if (r.everything()) return "*";
  if (r.low == r.high) return print(r.low);
  std::string text = r.low == 0 ? "" : print(r.low);
  text += "..";
  if (r.high != range{}.high) text += print(r.high);
  return text;
}

std::string print_number(std::uint64_t value) { return std::to_string(value); }

void append_sequence(std::vector<std::uint64_t>& sizes, const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() < 2) {
    sizes.push_back(parse_bytes(text));
    return;
  }
  if (parts.size() > 3)
    refuse(text, "a sequence of sizes", "Write first:last or first:last:factor, as in 4:64Mi.");
  const std::uint64_t first = parse_bytes(parts[0]);
  const std::uint64_t last = parse_bytes(parts[1]);
  const std::uint64_t factor = parts.size() == 3 ? parse_number(parts[2]) : 2;
  if (first == 0 || first > last || factor < 2)
    refuse(text, "a sequence of sizes",
           "It goes up by a factor of 2 or more from at least 1 byte; write 0,4:64Mi to begin "
           "with 0.");
  for (std::uint64_t size = first;; size *= factor) {
    sizes.push_back(size);
    if (size > last / factor) break;
  }
}

struct time_unit {
  const char* name;
  std::uint64_t nanoseconds;
};

constexpr std::array<time_unit, 6> time_units{{{"ns", 1},
                                               {"us", 1000},
                                               {"ms", 1000000},
                                               {"s", 1000000000},
                                               {"min", 60000000000},
                                               {"h", 3600000000000}}};

std::uint64_t nanoseconds_of_unit(std::string_view unit, std::string_view text) {
  if (unit.empty()) unit = "s";
  for (const auto& known : time_units)
    if (lower(unit) == known.name) return known.nanoseconds;
  refuse(text, "a time", duration_hint);
}

// Decimals after the point, as so many of `unit` nanoseconds, rounded down.
std::uint64_t take_decimals(std::string_view& text, std::uint64_t unit) noexcept {
  std::uint64_t result = 0;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    unit /= 10;
    result += unit * static_cast<std::uint64_t>(text.front() - '0');
    text.remove_prefix(1);
  }
  return result;
}

}  // namespace

std::string_view trim(std::string_view text) noexcept {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (trim(text).empty()) return parts;
  while (true) {
    const auto end = text.find(separator);
    parts.emplace_back(trim(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string join(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += between;
    text += parts[i];
  }
  return text;
}

bool is_plain(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c >= ' ' && c != 0x7f && c != '"' && c != '\\';
  });
}

std::uint64_t parse_number(std::string_view text) {
  std::string_view rest = trim(text);
  const auto value = take_number(rest);
  if (!value || !rest.empty())
    refuse(text, "a whole number", "Write digits only; it must not be negative.");
  return *value;
}

std::uint64_t parse_bytes(std::string_view text) {
  std::string_view rest = trim(text);
  const auto number = take_number(rest);
  if (!number) refuse(text, "a size", size_hint);
  const auto shift = shift_of_unit(trim(rest));
  if (!shift) refuse(text, "a size", size_hint);
  if ((*number << *shift) >> *shift != *number)
    fail(errc::invalid_argument, "the size '" + std::string(text) + "' does not fit in 64 bits",
         "Write a smaller one.");
  return *number << *shift;
}

std::int64_t parse_signed_bytes(std::string_view text) {
  std::string_view rest = trim(text);
  const bool negative = !rest.empty() && rest.front() == '-';
  if (negative) rest.remove_prefix(1);
  const std::uint64_t bytes = parse_bytes(rest);
  if (bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    fail(errc::invalid_argument, "the size '" + std::string(text) + "' does not fit in 63 bits",
         "Write a smaller one.");
  const auto value = static_cast<std::int64_t>(bytes);
  return negative ? -value : value;
}

std::string print_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> units{"", "Ki", "Mi", "Gi", "Ti"};
  std::size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + units[unit];
}

std::string print_signed_bytes(std::int64_t bytes) {
  if (bytes >= 0) return print_bytes(static_cast<std::uint64_t>(bytes));
  return "-" + print_bytes(0 - static_cast<std::uint64_t>(bytes));
}

range parse_range(std::string_view text) { return parse_range_of(text, parse_number); }
range parse_byte_range(std::string_view text) { return parse_range_of(text, parse_bytes); }
std::string print_range(const range& r) { return print_range_of(r, print_number); }
std::string print_byte_range(const range& r) { return print_range_of(r, print_bytes); }

std::vector<std::uint64_t> parse_byte_sequence(std::string_view text) {
  std::vector<std::uint64_t> sizes;
  for (const std::string& part : split(text, ',')) append_sequence(sizes, part);
  if (sizes.empty())
    refuse(text, "a sequence of sizes", "Write first:last, as in 4:64Mi, or sizes with commas.");
  return sizes;
}

std::chrono::nanoseconds parse_duration(std::string_view text) {
  std::string_view rest = trim(text);
  const auto number = take_number(rest);
  if (!number) refuse(text, "a time", duration_hint);
  std::string_view decimals;
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    const auto end = std::min(rest.find_first_not_of("0123456789"), rest.size());
    decimals = rest.substr(0, end);
    rest.remove_prefix(end);
    if (decimals.empty()) refuse(text, "a time", duration_hint);
  }
  const std::uint64_t unit = nanoseconds_of_unit(trim(rest), text);
  constexpr auto most = static_cast<std::uint64_t>(std::chrono::nanoseconds::max().count());
  if (*number >= most / unit)
    fail(errc::invalid_argument, "the time '" + std::string(text) + "' is too long",
         "Write a shorter one, or 0 for none.");
  return std::chrono::nanoseconds(
      static_cast<std::int64_t>(*number * unit + take_decimals(decimals, unit)));
}

std::string print_duration(std::chrono::nanoseconds time) {
  const auto count = static_cast<std::uint64_t>(time.count());
  for (const char* name : {"s", "ms", "us"})
    for (const auto& unit : time_units)
      if (unit.name == std::string_view(name) && count % unit.nanoseconds == 0)
        return std::to_string(count / unit.nanoseconds) + name;
  return std::to_string(count) + "ns";
}

namespace {

std::string print(double value, std::chars_format format, int precision) {
  std::array<char, 512> text{};  // for all digits of the largest double
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format, precision);
  return {text.data(), end.ptr};
}

}  // namespace

std::string print_fixed(double value, int decimals) {
  return print(value, std::chars_format::fixed, decimals);
}

std::string print_short(double value, int digits) {
  return print(value, std::chars_format::general, digits);
}

bool parse_boolean(std::string_view text) {
  if (const auto yes = boolean_of(text)) return *yes;
  refuse(text, "true or false", boolean_cure);
}

}  // namespace sucl::base
