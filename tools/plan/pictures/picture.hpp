// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Pictures of plans.
#pragma once

#include "plan/ir/schedule.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sucl::tools {

/// When an instruction runs; a transfer from its start to its end.
struct bar {
  int rank = 0;
  int channel = 0;
  std::uint32_t instruction = 0;  ///< index in the channel
  double start = 0;
  double end = 0;
};

/// Bars in one unit of time.
struct timeline {
  std::vector<bar> bars;
  bool timed = false;  ///< seconds; otherwise positions in the list of instructions
};

/// Every instruction takes one unit, in the order of its channel.
timeline in_order(const plan::schedule& s);

/// SVG: a row for each channel of each rank. With times, what the rank does or waits for is above
/// and the transfers in flight are below. At most `max_ranks` ranks are drawn, the first ones.
std::string draw_timeline(const plan::schedule& s, const timeline& t, int max_ranks);

/// SVG: which rank sends to which; the colour shows the level, and its strength the amount.
std::string draw_matrix(const plan::schedule& s);

/// A line of a chart.
struct curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
  bool dashed = false;  ///< as bounds are
};

/// Curves over logarithmic axes.
struct chart {
  std::string title;
  std::string x;
  std::string y;      ///< "seconds", or the unit of plain numbers
  bool bytes = true;  ///< x is a number of bytes
  std::vector<curve> curves;
};
/// SVG: charts side by side, two in a row.
std::string draw(const std::vector<chart>& charts);

}  // namespace sucl::tools
