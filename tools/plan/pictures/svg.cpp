// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "svg.hpp"

#include <array>
#include <cstdio>

namespace sucl::tools {
namespace {

std::string escaped(std::string_view words) {
  std::string result;
  for (const char c : words) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

std::string attribute(const char* name, std::string_view value) {
  return " " + std::string(name) + "=\"" + std::string(value) + "\"";
}

std::string attribute(const char* name, double value) { return attribute(name, pixels(value)); }

}  // namespace

std::string pixels(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  std::string result = text.data();
  while (result.back() == '0') result.pop_back();
  if (result.back() == '.') result.pop_back();
  return result == "-0" ? "0" : result;
}

const char* palette(std::size_t n) {
  static constexpr std::array colours{"#1f5fa8", "#c8641b", "#2f8f4e", "#8250b4",
                                      "#c4161c", "#6b6b6b", "#3aa6b9", "#8c7a1f"};
  return colours[n % colours.size()];
}

svg::svg(double width, double height) : m_width(width), m_height(height) {
  rect(0, 0, width, height, "#ffffff");
}

void svg::rect(double x, double y, double width, double height, std::string_view fill,
               double opacity, std::string_view title) {
  m_body += "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) +
            attribute("height", height) + attribute("fill", fill);
  if (opacity < 1) m_body += attribute("fill-opacity", opacity);
  m_body += title.empty() ? "/>\n" : "><title>" + escaped(title) + "</title></rect>\n";
}

void svg::line(double x1, double y1, double x2, double y2, std::string_view stroke, double width) {
  m_body += "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
            attribute("y2", y2) + attribute("stroke", stroke) + attribute("stroke-width", width) +
            "/>\n";
}

void svg::polyline(const std::vector<std::pair<double, double>>& points, std::string_view stroke,
                   double width, bool dashed) {
  std::string list;
  for (const auto& [x, y] : points) list += (list.empty() ? "" : " ") + pixels(x) + "," + pixels(y);
  m_body += "<polyline" + attribute("points", list) + attribute("fill", "none") +
            attribute("stroke", stroke) + attribute("stroke-width", width);
  if (dashed) m_body += attribute("stroke-dasharray", "5 3");
  m_body += "/>\n";
}

void svg::text(double x, double y, std::string_view words, anchor at, int size,
               std::string_view fill) {
  m_body += "<text" + attribute("x", x) + attribute("y", y) + attribute("font-size", size) +
            attribute("fill", fill);
  if (at != anchor::start)
    m_body += attribute("text-anchor", at == anchor::middle ? "middle" : "end");
  m_body += ">" + escaped(words) + "</text>\n";
}

void svg::upright(double x, double y, std::string_view words, int size) {
  m_body += "<text" + attribute("font-size", size) + attribute("text-anchor", "middle") +
            attribute("transform", "translate(" + pixels(x) + " " + pixels(y) + ") rotate(-90)") +
            ">" + escaped(words) + "</text>\n";
}

std::string svg::finish() const {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", m_width) +
         attribute("height", m_height) +
         attribute("viewBox", "0 0 " + pixels(m_width) + " " + pixels(m_height)) +
         attribute("font-family", "DejaVu Sans, sans-serif") + ">\n" + m_body + "</svg>\n";
}

}  // namespace sucl::tools
