// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "picture.hpp"
#include "svg.hpp"
#include "terminal/format.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sucl::tools {
namespace {

constexpr double chart_margin = 76, width = 640, height = 380, full_height = height + 96;

struct axis {
  double low = std::numeric_limits<double>::max();
  double high = 0;

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  /// From 0 to 1.
  double fraction(double value) const {
    return high > low ? std::log(value / low) / std::log(high / low) : 0.5;
  }
};

// Round numbers on a logarithmic axis: powers of ten, with their double and their half where there
// would be few.
std::vector<double> marks(const axis& a) {
  std::vector<double> list;
  const bool dense = a.high < 300 * a.low;
  for (double power = std::pow(10.0, std::floor(std::log10(a.low))); power <= a.high * 1.001;
       power *= 10)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double at = factor * power;
      if ((dense || factor == 1) && at >= a.low * 0.999 && at <= a.high * 1.001) list.push_back(at);
    }
  return list;
}

void draw_axes(svg& out, const chart& c, const axis& x, const axis& y, double left, double top) {
  const double bottom = top + height;
  out.line(left, bottom, left + width, bottom, "#444444");
  out.line(left, top, left, bottom, "#444444");
  const double factor = c.bytes ? 16 : 10;
  for (double at = std::pow(factor, std::ceil(std::log(x.low) / std::log(factor) - 1e-9));
       at <= x.high * 1.001; at *= factor) {
    const double at_pixel = left + width * x.fraction(at);
    out.line(at_pixel, top, at_pixel, bottom, "#e4e4e4");
    out.text(at_pixel, bottom + 16,
             c.bytes ? bytes_text(static_cast<std::uint64_t>(at)) : number_text(at),
             anchor::middle);
  }
  const bool times = c.y == "seconds";
  for (const double at : marks(y)) {
    const double at_pixel = bottom - height * y.fraction(at);
    out.line(left, at_pixel, left + width, at_pixel, "#e4e4e4");
    out.text(left - 6, at_pixel + 4, times ? axis_time_text(at) : number_text(at), anchor::end);
  }
  out.text(left + width / 2, bottom + 34, c.x, anchor::middle, 12);
  out.upright(left - 60, top + height / 2, times ? "time" : c.y, 12);
}

// How wide a chart is with its margins and the names of its curves.
double full_width(const chart& c) {
  std::size_t longest = 0;
  for (const curve& one : c.curves) longest = std::max(longest, one.name.size());
  return chart_margin + width + 60 + 7.2 * static_cast<double>(longest);
}

void draw_at(svg& out, const chart& c, double left, double top) {
  axis x, y;
  for (const curve& one : c.curves)
    for (const auto& [at, value] : one.points) {
      x.add(at);
      y.add(value);
    }
  out.text(left, top - 18, c.title, anchor::start, 14);
  draw_axes(out, c, x, y, left, top);
  double name_at = top + 10;
  for (std::size_t i = 0; i < c.curves.size(); ++i) {
    std::vector<std::pair<double, double>> points;
    for (const auto& [at, value] : c.curves[i].points)
      points.emplace_back(left + width * x.fraction(at), top + height * (1 - y.fraction(value)));
    out.polyline(points, palette(i), 2, c.curves[i].dashed);
    out.line(left + width + 14, name_at - 4, left + width + 34, name_at - 4, palette(i), 2);
    out.text(left + width + 40, name_at, c.curves[i].name);
    name_at += 18;
  }
}

}  // namespace

std::string draw(const std::vector<chart>& charts) {
  double widest = 0;
  for (const chart& c : charts) widest = std::max(widest, full_width(c));
  const auto columns = static_cast<double>(std::min<std::size_t>(charts.size(), 2));
  const std::size_t rows = (charts.size() + 1) / 2;
  svg out(columns * widest, static_cast<double>(rows) * full_height);
  for (std::size_t i = 0; i < charts.size(); ++i) {
    const std::size_t column = i % 2, row = i / 2;
    draw_at(out, charts[i], chart_margin + static_cast<double>(column) * widest,
            40 + static_cast<double>(row) * full_height);
  }
  return out.finish();
}

}  // namespace sucl::tools
