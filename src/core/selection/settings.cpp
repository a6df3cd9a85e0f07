// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/selection/settings.hpp"

#include "base/error.hpp"
#include "base/setting_values.hpp"
#include "base/text.hpp"

#include <string_view>

namespace sucl::core {

void backend_setting::refuse(const std::string& what, const std::string& hint) const {
  base::fail(errc::configuration,
             std::string("backend ") + m_backend + ": " + m_key + " = " + m_value + what, hint);
}

void backend_setting::refuse_key(const std::string& known) const {
  base::fail(
      errc::configuration,
      std::string("backend ") + m_backend + " does not understand " + m_key + " = " + m_value,
      known);
}

std::uint64_t backend_setting::number(base::bounds<std::uint64_t> range) const {
  std::uint64_t read = 0;
  const auto problem = base::read_number(m_key, m_value, range, read);
  if (!problem.message.empty())
    base::fail(errc::configuration, std::string("backend ") + m_backend + ": " + problem.message,
               problem.hint);
  return read;
}

std::uint64_t backend_setting::size(base::bounds<std::uint64_t> range) const {
  const std::string allowed = "Write a size from " + base::print_bytes(range.low) + " to " +
                              base::print_bytes(range.high) + ", as in 64Ki.";
  std::uint64_t read = 0;
  try {
    read = base::parse_bytes(m_value);
  } catch (const error&) {
    refuse(" is not a size", allowed);
  }
  if (!range.contain(read)) refuse(" is out of range", allowed);
  return read;
}

bool backend_setting::boolean() const {
  const auto read = base::boolean_of(m_value);
  if (!read) refuse(" is neither true nor false", base::boolean_cure);
  return *read;
}

namespace {

// Whether a text has the word, which is not a part of a longer one.
bool has_word(std::string_view text, std::string_view word) {
  const auto is_part = [&](std::size_t at) {
    if (at >= text.size()) return false;
    const char c = text[at];
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1))
    if ((at == 0 || !is_part(at - 1)) && !is_part(at + word.size())) return true;
  return false;
}

}  // namespace

// A backend has its settings as text, without where they come from.
void add_origin(error_info& problem, const base::config& settings, const std::string& backend) {
  if (problem.code != errc::configuration) return;
  const std::string prefix = "backends." + backend + ".";
  constexpr std::string_view in_file = "file ";
  for (const base::setting_row& row : settings.rows) {
    if (row.key.compare(0, prefix.size(), prefix) != 0 || row.origin == "default") continue;
    if (!has_word(problem.message, std::string_view(row.key).substr(prefix.size()))) continue;
    std::string_view origin = row.origin;
    if (origin.substr(0, in_file.size()) == in_file) origin.remove_prefix(in_file.size());
    problem.message = std::string(origin) + ": " + problem.message;
    return;
  }
}

}  // namespace sucl::core
