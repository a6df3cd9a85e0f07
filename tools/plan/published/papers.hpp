// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The tables of the papers that SuCL's plans come from, computed again by simulation.
#pragma once

#include "plan/pictures/picture.hpp"

#include "sim/model/machine.hpp"

#include <optional>
#include <string>
#include <vector>

namespace sucl::tools {

class progress;

/// A table with its caption, and its curves where the paper draws some.
struct paper_table {
  std::string caption;
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;
  std::optional<chart> picture = {};
};

/// What a paper's tables are computed for.
struct paper_options {
  std::vector<sim::machine> machines;  ///< never empty
  int nodes = 4;
  std::uint64_t bytes = 0;
  double effort = 0;  ///< of search, as tune::search_options::budget
  const progress* shown = nullptr;
};

/// The names that compare --paper takes.
std::vector<std::string> paper_names();

/// The machines of a paper where the user names none.
std::vector<std::string> paper_machines(const std::string& paper);

/// Whether its tables have pictures.
bool paper_has_curves(const std::string& paper);

/// Computes the tables.
std::vector<paper_table> compute_paper(const std::string& paper, const paper_options& o);

}  // namespace sucl::tools
