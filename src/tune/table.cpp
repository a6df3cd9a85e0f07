// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/table.hpp"

#include "base/text.hpp"

#include <array>
#include <cstdio>

namespace sucl::tune {
namespace {

std::string microseconds(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", seconds * 1e6);
  return text.data();
}

// The sizes that row i is for, as base::parse_byte_range() reads them.
std::string sizes(const table& t, std::size_t i) {
  base::range r;
  if (i > 0) r.low = t.rows[i].bytes;
  if (i + 1 < t.rows.size()) r.high = t.rows[i + 1].bytes - 1;
  return base::print_byte_range(r);
}

}  // namespace

const table_row* find(const table& t, std::uint64_t bytes) {
  const table_row* row = nullptr;
  for (const table_row& r : t.rows)
    if (!row || r.bytes <= bytes) row = &r;
  return row;
}

std::string to_toml(const table& t) {
  std::string text = "# Written by sucl plan search: the best plans by simulation.\nformat = 1\n";
  text += "machine = \"" + t.machine + "\"\ncollective = \"" + sucl::name(t.what.kind) +
          "\"\nranks = " + std::to_string(t.what.ranks) +
          "\nelement = " + std::to_string(t.what.element_bytes) + "\n";
  for (std::size_t i = 0; i < t.rows.size(); ++i) {
    const table_row& r = t.rows[i];
    text += "\n[[plan]]\nbytes = \"" + sizes(t, i) + "\"\nrecipe = \"" + plan::to_text(r.how) +
            "\"\npredicted_us = " + microseconds(r.seconds) + "  # at " +
            base::print_bytes(r.bytes) + "\nverified = " + (r.verified ? "true" : "false") + "\n";
  }
  return text;
}

}  // namespace sucl::tune
