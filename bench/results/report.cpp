// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstdio>
#include <tuple>

namespace sucl::bench {
namespace {

using json = nlohmann::ordered_json;

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[128];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

// Three digits that count: 0.83, 12.4, 1250.
std::string print_time(double us) {
  return format(us < 9.995 ? "%.2f" : us < 999.5 ? "%.1f" : "%.0f", us);
}

bool back_to_back(const outcome& o) {
  return o.form == "stream" || o.form == "device" || o.form == "issue";
}

std::string column_name(const outcome& o) {
  return o.name == "sucl" || back_to_back(o) ? o.name + " " + o.form : o.name;
}

// Bytes that each rank's link has to move, as a multiple of the row's bytes.
double bus_factor(const row& r) {
  const double others = r.ranks - 1;
  if (r.collective == "allreduce") return 2 * others / r.ranks;
  for (const char* of : {"broadcast", "reduce", "sendrecv"})
    if (r.collective == of) return 1;
  for (const char* of : {"allgather", "allgatherv", "reduce_scatter", "reduce_scatter_block",
                         "alltoall", "alltoallv", "gather", "gatherv", "scatter", "scatterv"})
    if (r.collective == of) return others;  // the bytes are those of a block
  return 0;
}

double bus_bandwidth(const row& r) {
  return bus_factor(r) * static_cast<double>(r.bytes) / std::max(r.result.time.median, 1e-3) / 1e3;
}

auto table_of(const row& r) { return std::tie(r.collective, r.memory, r.type, r.op, r.ranks); }

// How the calls of a column were timed: "stream", "device", "issue", or "" for each by itself.
std::string timing_of(const std::string& column) {
  for (const char* timing : {"stream", "device", "issue"})
    if (column.ends_with(std::string(" ") + timing)) return timing;
  return {};
}

struct column {
  std::string title;
  std::vector<std::string> cells;
};

const row* find(const std::vector<const row*>& rows, std::uint64_t bytes, const std::string& name) {
  for (const row* r : rows)
    if (r->bytes == bytes && column_name(r->result) == name) return r;
  return nullptr;
}

std::string time_cell(const row* r) {
  if (!r) return "-";
  return r->result.valid ? print_time(r->result.time.median) : "WRONG";
}

std::string ratio_cell(const row* mine, const row* other) {
  if (!mine || !other || !mine->result.valid || !other->result.valid) return "-";
  return format("%.2f", mine->result.time.median / std::max(other->result.time.median, 1e-3));
}

std::vector<column> columns_of(const std::vector<const row*>& rows) {
  std::vector<std::uint64_t> sizes;
  std::vector<std::string> names;
  for (const row* r : rows) {
    if (std::find(sizes.begin(), sizes.end(), r->bytes) == sizes.end()) sizes.push_back(r->bytes);
    const std::string name = column_name(r->result);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::vector<column> columns{{"bytes", {}}};
  for (const auto bytes : sizes) columns[0].cells.push_back(base::print_bytes(bytes));
  for (const auto& name : names) {
    columns.push_back({name, {}});
    for (const auto bytes : sizes)
      columns.back().cells.push_back(time_cell(find(rows, bytes, name)));
  }
  for (const auto& mine : names)
    for (const auto& other : names) {
      const bool compared = mine.rfind("sucl ", 0) == 0 && other.rfind("sucl ", 0) != 0 &&
                            timing_of(mine) == timing_of(other);
      if (!compared) continue;
      columns.push_back({mine.substr(5) + "/" + other, {}});
      for (const auto bytes : sizes)
        columns.back().cells.push_back(
            ratio_cell(find(rows, bytes, mine), find(rows, bytes, other)));
    }
  // Where calls are timed back to back, how well the links are used; by the device's clock if that
  // is there.
  const bool device = std::any_of(names.begin(), names.end(),
                                  [](const auto& name) { return timing_of(name) == "device"; });
  for (const auto& name : names) {
    if (timing_of(name) != (device ? "device" : "stream")) continue;
    columns.push_back({name.substr(0, name.find(' ')) + " GB/s", {}});
    for (const auto bytes : sizes) {
      const row* r = find(rows, bytes, name);
      columns.back().cells.push_back(r ? format("%.1f", bus_bandwidth(*r)) : "-");
    }
  }
  return columns;
}

std::string print(const std::vector<column>& columns) {
  std::string text;
  for (std::size_t line = 0; line <= columns[0].cells.size(); ++line) {
    for (const column& c : columns) {
      std::size_t width = std::max<std::size_t>(8, c.title.size());
      for (const auto& cell : c.cells) width = std::max(width, cell.size());
      const std::string& cell = line == 0 ? c.title : c.cells[line - 1];
      text += "  " + std::string(width - cell.size(), ' ') + cell;
    }
    text += "\n";
  }
  return text;
}

}  // namespace

json as_json(const json& header, const std::vector<row>& rows) {
  json list = json::array();
  for (const row& r : rows)
    list.push_back({{"collective", r.collective},
                    {"impl", r.result.name},
                    {"form", r.result.form},
                    {"memory", r.memory},
                    {"type", r.type},
                    {"op", r.op},
                    {"ranks", r.ranks},
                    {"bytes", r.bytes},
                    {"median_us", r.result.time.median},
                    {"p95_us", r.result.time.p95},
                    {"min_us", r.result.time.min},
                    {"iterations", r.result.iterations},
                    {"busbw_gbs", bus_bandwidth(r)},
                    {"valid", r.result.valid}});
  return {{"header", header}, {"rows", list}};
}

std::string as_tables(const std::vector<row>& rows) {
  std::string text;
  std::vector<const row*> group;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    group.push_back(&rows[i]);
    if (i + 1 < rows.size() && table_of(rows[i]) == table_of(rows[i + 1])) continue;
    const row& r = rows[i];
    text += "\n" + r.collective;
    for (const std::string& word : {r.memory, r.type, r.op})
      if (word != "none") text += ", " + word;
    text += ", " + std::to_string(r.ranks) + (r.ranks == 1 ? " rank" : " ranks") +
            ": median us of the slowest rank\n";
    text += print(columns_of(group));
    group.clear();
  }
  return text;
}

bool all_valid(const std::vector<row>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const row& r) { return r.result.valid; });
}

std::string validity_summary(const std::vector<row>& rows) {
  const auto wrong =
      std::count_if(rows.begin(), rows.end(), [](const row& r) { return !r.result.valid; });
  const std::string total = std::to_string(rows.size());
  if (wrong == 0) return "all " + total + " results valid";
  return "FAILED: " + std::to_string(wrong) + " of " + total + " results are wrong";
}

std::string as_line(const std::vector<row>& rows) {
  if (rows.empty()) return {};
  const row& first = rows.front();
  std::string text = first.collective;
  for (const std::string& word : {first.memory, first.type, first.op})
    if (word != "none") text += " " + word;
  text += " " + base::print_bytes(first.bytes) + ":";
  for (const row& r : rows) text += "  " + column_name(r.result) + " " + time_cell(&r);
  return text;
}

}  // namespace sucl::bench
