// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A small writer of SVG.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sucl::tools {

/// Which end of a text its coordinates are those of.
enum class anchor { start, middle, end };

/// A picture to which elements are added; finish() gives the file. Positions and sizes are pixels
/// from the upper left corner. The same calls give the same bytes.
class svg {
 public:
  svg(double width, double height);

  /// A filled rectangle; `title` is shown when one points at it.
  void rect(double x, double y, double width, double height, std::string_view fill,
            double opacity = 1, std::string_view title = {});
  void line(double x1, double y1, double x2, double y2, std::string_view stroke, double width = 1);
  void polyline(const std::vector<std::pair<double, double>>& points, std::string_view stroke,
                double width, bool dashed = false);
  void text(double x, double y, std::string_view words, anchor at = anchor::start, int size = 11,
            std::string_view fill = "#222222");
  /// Text that reads upwards.
  void upright(double x, double y, std::string_view words, int size = 11);

  std::string finish() const;

 private:
  double m_width;
  double m_height;
  std::string m_body;
};

/// A number with at most two decimals and no more digits than it needs.
std::string pixels(double value);

/// The colour of a level of the machine or of the n-th line of a chart: those of
/// python/sucl/plot/style.py come first.
const char* palette(std::size_t n);

}  // namespace sucl::tools
