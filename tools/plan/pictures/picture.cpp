// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "picture.hpp"

#include "svg.hpp"
#include "terminal/format.hpp"

#include "base/error.hpp"
#include "plan/ir/traffic.hpp"
#include "plan/serialization/text.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace sucl::tools {
namespace {

using plan::instruction;
using plan::opcode;
using plan::schedule;

constexpr double margin = 12;
constexpr double left = 92;        // of the rows, for their names
constexpr double row_height = 16;  // of a channel
constexpr double row_gap = 6;      // between ranks
constexpr double inner_width = 920;
constexpr double header = 64;
constexpr std::ptrdiff_t max_bars = 1'000'000;  // about 250 bytes each

constexpr const char* copy_colour = "#9a9a9a";
constexpr const char* reduce_colour = "#d9a300";
constexpr const char* wait_colour = "#d8d8d8";

const char* colour_of(const instruction& i) {
  if (plan::is_posted(i.op)) return palette(i.level);
  if (i.op == opcode::copy) return copy_colour;
  if (i.op == opcode::reduce) return reduce_colour;
  return wait_colour;
}

std::string level_name(const schedule& s, std::size_t level) {
  const plan::level& l = s.levels[level];
  return l.via == "any" ? l.name : l.name + " via " + l.via;
}

// Squares with their names, from left to right.
void draw_legend(svg& out, double x, double y,
                 const std::vector<std::pair<std::string, std::string>>& list) {
  for (const auto& [name, colour] : list) {
    out.rect(x, y - 9, 10, 10, colour);
    out.text(x + 14, y, name);
    x += 30 + 7 * static_cast<double>(name.size());
  }
}

std::string title_of(const schedule& s) {
  const plan::problem& p = s.what;
  return std::string(sucl::name(p.kind)) + ", " + std::to_string(p.ranks) + " ranks, " +
         bytes_text(p.counts[0] * p.element_bytes) + ": " + s.algorithm;
}

// The vertical position of each channel that is drawn.
struct rows {
  std::vector<std::vector<double>> y;  // a rank, a channel
  double bottom = header;

  rows(const schedule& s, std::size_t ranks) {
    for (std::size_t r = 0; r < ranks; ++r) {
      y.emplace_back();
      for (std::size_t c = 0; c < s.ranks[r].channels.size(); ++c) {
        y.back().push_back(bottom);
        bottom += row_height;
      }
      bottom += row_gap;
    }
  }
};

void draw_bar(svg& out, const schedule& s, const bar& b, double y, double scale, bool timed) {
  const instruction& i = s.ranks[static_cast<std::size_t>(b.rank)]
                             .channels[static_cast<std::size_t>(b.channel)][b.instruction];
  const bool posted = plan::is_posted(i.op);
  std::string title = "rank " + std::to_string(b.rank) + ", channel " + std::to_string(b.channel) +
                      ", instruction " + std::to_string(b.instruction) + ": " + plan::to_text(i);
  if (timed) title += ", " + time_text(b.start) + " to " + time_text(b.end);
  const double x = left + b.start * scale;
  const double width = std::max((b.end - b.start) * scale - (timed ? 0 : 0.5), 0.4);
  if (!timed) {
    out.rect(x, y, width, row_height - 2, colour_of(i), i.op == opcode::receive ? 0.45 : 1, title);
  } else if (posted) {
    out.rect(x, y + row_height / 2, width, row_height / 2 - 2, palette(i.level), 0.5, title);
  } else {
    out.rect(x, y, width, row_height / 2, colour_of(i), 1, title);
  }
}

// Marks along the axis below the rows.
void draw_axis(svg& out, double y, double end, bool timed) {
  const double step = round_step(end / 8);
  const double scale = inner_width / end;
  out.line(left, y, left + inner_width, y, "#444444");
  for (double at = 0; at <= end * 1.0001; at += step) {
    out.line(left + at * scale, y, left + at * scale, y + 4, "#444444");
    out.text(left + at * scale, y + 16, timed ? axis_time_text(at) : pixels(at), anchor::middle);
  }
  out.text(left + inner_width / 2, y + 32, timed ? "time" : "instruction", anchor::middle, 12);
}

}  // namespace

timeline in_order(const schedule& s) {
  timeline t;
  for (std::size_t r = 0; r < s.ranks.size(); ++r)
    for (std::size_t c = 0; c < s.ranks[r].channels.size(); ++c)
      for (std::size_t i = 0; i < s.ranks[r].channels[c].size(); ++i)
        t.bars.push_back({static_cast<int>(r), static_cast<int>(c), static_cast<std::uint32_t>(i),
                          static_cast<double>(i), static_cast<double>(i + 1)});
  return t;
}

std::string draw_timeline(const schedule& s, const timeline& t, int max_ranks) {
  const std::size_t shown = std::min(s.ranks.size(), static_cast<std::size_t>(max_ranks));
  const rows positions(s, shown);
  const auto bars = std::count_if(t.bars.begin(), t.bars.end(), [&](const bar& b) {
    return static_cast<std::size_t>(b.rank) < shown;
  });
  if (bars > max_bars)
    base::fail(errc::invalid_argument,
               "the timeline of " + std::to_string(shown) + " ranks has " + std::to_string(bars) +
                   " instructions, more than the " + std::to_string(max_bars) + " that are drawn",
               "Draw fewer ranks: --drawn-ranks.");
  double end = t.timed ? 1e-12 : 1;
  for (const bar& b : t.bars) end = std::max(end, b.end);
  svg out(left + inner_width + 3 * margin, positions.bottom + 40);
  std::string title = title_of(s);
  if (shown < s.ranks.size()) title += " (the first " + std::to_string(shown) + " ranks)";
  out.text(margin, 22, title, anchor::start, 14);
  std::vector<std::pair<std::string, std::string>> legend{
      {"copy", copy_colour}, {"reduce", reduce_colour}, {"wait, fence, signal", wait_colour}};
  for (std::size_t l = 0; l < s.levels.size(); ++l)
    legend.emplace_back("transfer, " + level_name(s, l), palette(l));
  draw_legend(out, margin, 44, legend);
  for (std::size_t r = 0; r < shown; ++r)
    for (std::size_t c = 0; c < positions.y[r].size(); ++c) {
      const std::string name = c == 0 ? "rank " + std::to_string(r) + " " : "";
      out.text(left - 6, positions.y[r][c] + 11,
               name + (positions.y[r].size() > 1 ? "c" + std::to_string(c) : ""), anchor::end, 10);
    }
  for (const bar& b : t.bars)
    if (static_cast<std::size_t>(b.rank) < shown)
      draw_bar(out, s, b,
               positions.y[static_cast<std::size_t>(b.rank)][static_cast<std::size_t>(b.channel)],
               inner_width / end, t.timed);
  draw_axis(out, positions.bottom, end, t.timed);
  return out.finish();
}

namespace {

constexpr int max_cells = 128;  // a side
constexpr double matrix_side = 560;

// Bytes of each level that go from one group of ranks to another.
using cells = std::map<std::pair<int, int>, std::map<int, std::uint64_t>>;

void draw_cells(svg& out, const cells& list, int sides, const std::vector<std::uint64_t>& most) {
  const double size = matrix_side / sides;
  for (const auto& [at, by_level] : list) {
    const auto top =
        std::max_element(by_level.begin(), by_level.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto level = static_cast<std::size_t>(top->first);
    const double strength = static_cast<double>(top->second) / static_cast<double>(most[level]);
    out.rect(left + at.second * size, header + at.first * size, size - (size > 4 ? 1 : 0),
             size - (size > 4 ? 1 : 0), palette(level), 0.3 + 0.7 * strength,
             std::to_string(at.first) + " to " + std::to_string(at.second) + ": " +
                 bytes_text(top->second));
  }
}

}  // namespace

std::string draw_matrix(const schedule& s) {
  const auto ranks = static_cast<int>(s.ranks.size());
  const int group = (ranks + max_cells - 1) / max_cells;
  const int sides = (ranks + group - 1) / group;
  cells list;
  std::vector<std::uint64_t> bytes(s.levels.size()), messages(s.levels.size()),
      most(s.levels.size(), 1);
  for (const plan::flow& f : plan::traffic(s)) {
    const auto level = static_cast<std::size_t>(f.level);
    std::uint64_t& cell = list[{f.from / group, f.to / group}][f.level];
    cell += f.bytes;
    most[level] = std::max(most[level], cell);
    bytes[level] += f.bytes;
    messages[level] += f.messages;
  }
  svg out(left + matrix_side + 260, header + matrix_side + 40);
  out.text(margin, 22, title_of(s), anchor::start, 14);
  out.rect(left, header, matrix_side, matrix_side, "#f4f4f4");
  draw_cells(out, list, sides, most);
  const double size = matrix_side / sides;
  const int step = std::max(1, sides / 16);
  for (int i = 0; i < sides; i += step) {
    out.text(left - 5, header + (i + 0.5) * size + 4, std::to_string(i * group), anchor::end, 10);
    out.text(left + (i + 0.5) * size, header - 5, std::to_string(i * group), anchor::middle, 10);
  }
  out.upright(margin + 14, header + matrix_side / 2, "from rank", 12);
  out.text(left + matrix_side / 2, header - 20, "to rank", anchor::middle, 12);
  for (std::size_t l = 0; l < s.levels.size(); ++l) {
    const double y = header + 20 + 40 * static_cast<double>(l);
    draw_legend(out, left + matrix_side + 16, y, {{level_name(s, l), palette(l)}});
    out.text(left + matrix_side + 30, y + 15,
             bytes_text(bytes[l]) + " in " + std::to_string(messages[l]) + " messages");
  }
  return out.finish();
}

}  // namespace sucl::tools
