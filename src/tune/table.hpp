// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The best plans over message sizes, as a file.
#pragma once

#include "tune/search.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sucl::tune {

/// The best recipe for messages from `bytes` up to the next row's.
struct table_row {
  std::uint64_t bytes = 0;
  plan::recipe how;
  double seconds = 0;  ///< predicted for this size
  bool verified = false;

  friend bool operator==(const table_row&, const table_row&) = default;
};

/// The best recipes of a collective on so many ranks of a machine, by rising size.
struct table {
  std::string machine;
  plan::problem what;  ///< counts are those of no row
  std::vector<table_row> rows;
};

/// The row for a message of so many bytes: the last one that is not larger, else the first. Null if
/// there are no rows.
const table_row* find(const table& t, std::uint64_t bytes);

/// As TOML: one `[[plan]]` a row, with the range of sizes it is for. Neighbouring sizes with the
/// same recipe stay apart, as each has its own prediction.
std::string to_toml(const table& t);

}  // namespace sucl::tune
