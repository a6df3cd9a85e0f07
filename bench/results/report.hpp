// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Results as text and as JSON.
#pragma once

#include "statistics.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sucl::bench {

/// One row of the results.
struct row {
  std::string collective;
  std::string memory;
  std::string type;
  std::string op;
  int ranks = 0;
  std::uint64_t bytes = 0;
  outcome result;
};

/// The rows as JSON, with the header in front.
nlohmann::ordered_json as_json(const nlohmann::ordered_json& header, const std::vector<row>& rows);

/// A table for each collective, memory, type and op: a line for each size, a column for each
/// implementation, and what the library takes compared with the others.
std::string as_tables(const std::vector<row>& rows);

/// "all N results valid", or how many are not.
std::string validity_summary(const std::vector<row>& rows);
bool all_valid(const std::vector<row>& rows);

/// Times of one size in one line, for the progress.
std::string as_line(const std::vector<row>& rows);

}  // namespace sucl::bench
