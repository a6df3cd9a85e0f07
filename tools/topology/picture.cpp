// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tools/topology/topology.hpp"

#include "tools/plan/pictures/svg.hpp"
#include "tools/terminal/format.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <map>

namespace sucl::tools {
namespace {

constexpr int max_nodes = 16;
constexpr std::size_t max_drawn = 16;  // ranks of an island
constexpr double margin = 20, title_height = 44, box_width = 330, bracket_step = 16, row = 20;
constexpr double header = 40, pad = 10, gap = 24, cell = 58, letter = 7;
constexpr const char* node_edge = "#777777";
constexpr const char* island_edge = "#1f5fa8";

struct frame {
  double x = 0, y = 0, width = 0, height = 0;
};

void draw_frame(svg& out, const frame& f, const char* edge, const char* fill) {
  out.rect(f.x, f.y, f.width, f.height, edge);
  out.rect(f.x + 1, f.y + 1, f.width - 2, f.height - 2, fill);
}

// Everything that is drawn of one node.
struct node_column {
  std::map<int, std::vector<const member*>> islands;
  std::vector<const link_class*> brackets;  // links between its islands
  frame box;
  double width() const {
    return box_width + 2 * pad +
           (brackets.empty() ? 0 : 30 + bracket_step * static_cast<double>(brackets.size()));
  }
};

std::string shortened(const std::string& text, std::size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

// Of the steps of the rank that asks, as communicator.explain() has them.
std::string steps_in(const std::string& explanation) {
  const std::string words = "on this rank: ";
  const auto at = explanation.find(words);
  if (at == explanation.npos) return {};
  const auto from = at + words.size();
  return explanation.substr(from, explanation.find('\n', from) - from);
}

double height_of(std::size_t ranks) {
  const auto rows = std::min(ranks, max_drawn) + (ranks > max_drawn ? 1 : 0);
  return header + row * static_cast<double>(rows) + pad;
}

class picture {
 public:
  explicit picture(const topology_report& r)
      : m_report(r),
        m_classes(classes_of(r)),
        m_nodes(columns()),
        m_width(lay_out()),
        m_out(m_width, m_height) {}

  std::string draw() {
    m_out.text(margin, 26,
               std::to_string(m_report.ranks.size()) + " ranks, " +
                   m_report.control_plane.substr(0, m_report.control_plane.find('\n')),
               anchor::start, 15);
    for (const node_column& n : m_nodes) draw_node(n);
    if (m_nodes.size() > 1) draw_network();
    double y = m_legend;
    for (std::size_t c = 0; c < m_classes.size(); ++c, y += row) draw_class(m_classes[c], y);
    y += row / 2;
    for (const topology_operation& o : m_report.operations)
      m_out.text(margin, y += row, words_of(o), anchor::start, 12);
    if (has_matrix()) draw_matrix(y + 50);
    return m_out.finish();
  }

 private:
  std::vector<node_column> columns() const {
    std::vector<node_column> all;
    for (const member& m : m_report.ranks) {
      if (m.node >= max_nodes)
        base::fail(errc::invalid_argument, "there are more nodes than are drawn",
                   "Jobs of at most " + std::to_string(max_nodes) +
                       " nodes are drawn; the text "
                       "and --json have all of them.");
      all.resize(std::max(all.size(), static_cast<std::size_t>(m.node) + 1));
      all[static_cast<std::size_t>(m.node)].islands[m.island].push_back(&m);
    }
    for (const link_class& c : m_classes)
      for (node_column& n : all)
        if (c.one != c.other && n.islands.count(c.one) != 0 && n.islands.count(c.other) != 0)
          n.brackets.push_back(&c);
    return all;
  }

  // Sets the boxes; returns the width.
  double lay_out() {
    double x = margin, bottom = 0;
    for (node_column& n : m_nodes) {
      double height = 30;
      for (const auto& [number, members] : n.islands) height += height_of(members.size()) + gap;
      n.box = {x, title_height, n.width(), height - gap + pad};
      x += n.width() + margin;
      bottom = std::max(bottom, title_height + n.box.height);
    }
    m_network = bottom + 40;
    m_legend = m_nodes.size() > 1 ? m_network + 44 : bottom + 36;
    double end = m_legend + row / 2 +
                 row * static_cast<double>(m_classes.size() + m_report.operations.size());
    std::size_t longest = 0;
    for (const link_class& c : m_classes) longest = std::max(longest, words_of(c).size() + 6);
    for (const auto& o : m_report.operations) longest = std::max(longest, words_of(o).size());
    double width = std::max(x, letter * static_cast<double>(longest) + 2 * margin);
    if (has_matrix()) {
      const double side = cell * static_cast<double>(m_report.ranks.size());
      end += 60 + side / 2;
      width = std::max(width, side + 2 * margin + 60);
    }
    m_height = end + margin;
    return width;
  }

  bool has_matrix() const { return m_report.every_pair && m_report.ranks.size() > 2; }

  void draw_node(const node_column& n) {
    draw_frame(m_out, n.box, node_edge, "#f6f6f6");
    const member& first = *n.islands.begin()->second.front();
    m_out.text(n.box.x + pad, n.box.y + 20,
               "node " + std::to_string(first.node) + ": " + shortened(first.host, 40),
               anchor::start, 12);
    double y = n.box.y + 30;
    std::map<int, double> middles;
    for (const auto& [number, members] : n.islands) {
      const frame f{n.box.x + pad, y, box_width, height_of(members.size())};
      draw_island(f, number, members);
      middles[number] = y + f.height / 2;
      y += f.height + gap;
    }
    for (std::size_t b = 0; b < n.brackets.size(); ++b) {
      const link_class& c = *n.brackets[b];
      const double from = n.box.x + pad + box_width;
      const double shift = 6 * static_cast<double>(b);
      const double x = from + 14 + bracket_step * static_cast<double>(b);
      m_out.polyline({{from, middles[c.one] + shift},
                      {x, middles[c.one] + shift},
                      {x, middles[c.other] + shift},
                      {from, middles[c.other] + shift}},
                     colour_of(c), 3);
    }
  }

  void draw_island(const frame& f, int number, const std::vector<const member*>& members) {
    draw_frame(m_out, f, island_edge, "#eaf1f9");
    const std::string& by = m_report.within[static_cast<std::size_t>(number)];
    m_out.text(f.x + pad, f.y + 17,
               "island " + std::to_string(number) + ": " +
                   (members.front()->device_memory_on_host ? "memory that the host reads"
                                                           : "memory of devices"));
    m_out.text(f.x + pad, f.y + 33, by.empty() ? "one rank" : "collectives by " + by);
    double y = f.y + header;
    for (std::size_t i = 0; i < std::min(members.size(), max_drawn); ++i, y += row) {
      const member& m = *members[i];
      m_out.rect(f.x + pad, y, f.width - 2 * pad, row - 3, "#ffffff", 1,
                 "process " + std::to_string(m.process) + ", " + m.device);
      m_out.text(
          f.x + pad + 6, y + 13,
          "rank " + std::to_string(m.rank) + "  " + m.platform + "  " + shortened(m.device, 34));
    }
    if (members.size() > max_drawn)
      m_out.text(f.x + pad + 6, y + 13,
                 "and " + std::to_string(members.size() - max_drawn) + " more");
  }

  // Nodes are connected by one line.
  void draw_network() {
    const auto between =
        std::find_if(m_report.links.begin(), m_report.links.end(), [&](const topology_link& l) {
          const auto node = [&](int rank) {
            return m_report.ranks[static_cast<std::size_t>(rank)].node;
          };
          return node(l.from) != node(l.to);
        });
    const std::string how = between == m_report.links.end() ? "the network" : between->how;
    const frame& last = m_nodes.back().box;
    m_out.line(m_nodes.front().box.x, m_network, last.x + last.width, m_network, colour_of(how), 5);
    for (const node_column& n : m_nodes) {
      const double x = n.box.x + n.box.width / 2;
      m_out.line(x, n.box.y + n.box.height, x, m_network, colour_of(how), 3);
    }
    m_out.text(m_nodes.front().box.x, m_network + 18, how);
  }

  // One colour for each way.
  const char* colour_of(const std::string& how) {
    const auto at = std::find(m_ways.begin(), m_ways.end(), how);
    const auto index = static_cast<std::size_t>(at - m_ways.begin());
    if (at == m_ways.end()) m_ways.push_back(how);
    return palette(index + 1);
  }
  const char* colour_of(const link_class& c) { return colour_of(c.first->how); }

  static std::string words_of(const link_class& c) {
    std::string text =
        c.between + " (ranks " + c.ranks + "): " + c.first->how + " (backend " + c.first->by + ")";
    if (!c.seconds.empty()) text += "; 8 bytes " + c.seconds + ", 4 MiB " + c.rate;
    return text;
  }
  static std::string words_of(const topology_operation& o) {
    const std::string steps = steps_in(o.explanation);
    return o.what + ": by " + o.by + (steps.empty() ? "" : ": " + steps);
  }
  void draw_class(const link_class& c, double y) {
    m_out.line(margin, y - 4, margin + 30, y - 4, colour_of(c), 4);
    m_out.text(margin + 40, y, words_of(c), anchor::start, 12);
  }

  // Every pair of ranks: how, and how fast.
  void draw_matrix(double y) {
    const double left = margin + 50, height = cell / 2;
    for (std::size_t r = 0; r < m_report.ranks.size(); ++r) {
      const double at = static_cast<double>(r);
      m_out.text(left + cell * (at + 0.5), y - 6, std::to_string(r), anchor::middle);
      m_out.text(left - 8, y + height * (at + 0.5) + 4, "rank " + std::to_string(r), anchor::end);
    }
    for (const topology_link& l : m_report.links)
      for (const bool upper : {true, false}) {
        const double line = upper ? l.from : l.to, column = upper ? l.to : l.from;
        m_out.rect(left + cell * column, y + height * line, cell - 2, height - 2, colour_of(l.how),
                   0.35, std::to_string(l.from) + "-" + std::to_string(l.to) + ": " + l.how);
        if (!l.seconds) continue;
        const std::string words =
            upper ? number_text(*l.bytes_per_second / 1e9) + " GB/s" : time_text(*l.seconds);
        m_out.text(left + cell * (column + 0.5) - 1, y + height * (line + 0.5) + 3, words,
                   anchor::middle, 10);
      }
  }

  const topology_report& m_report;
  std::vector<link_class> m_classes;
  std::vector<node_column> m_nodes;
  std::vector<std::string> m_ways;
  double m_network = 0, m_legend = 0, m_height = 0, m_width;
  svg m_out;
};

}  // namespace

std::string draw_topology(const topology_report& report) { return picture(report).draw(); }

}  // namespace sucl::tools
