// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// From what was measured to a table, and what a threshold would have made of it.
#include "base/text.hpp"
#include "tuner.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace sucl::bench {
namespace {

using tune::call_form;
using tune::memory_kind;
using tune::table_row;

table_row row_of(const tuned_point& p, int ranks, int nodes) {
  const tried& best = p.all.front();
  table_row r;
  r.what = p.what;
  r.form = p.form;
  r.memory = p.memory;
  r.ranks = {static_cast<std::uint64_t>(ranks), static_cast<std::uint64_t>(ranks)};
  r.nodes = {static_cast<std::uint64_t>(nodes), static_cast<std::uint64_t>(nodes)};
  r.backend = best.backend;
  if (!best.recipe.empty()) r.how = plan::recipe_from_text(best.recipe);
  r.slice = best.slice;
  r.protocol = best.protocol;
  r.seconds = best.seconds;
  r.at = p.bytes;
  r.verified = !best.recipe.empty();  // nothing else ever runs
  return r;
}

bool same_subject(const tuned_point& a, const tuned_point& b) {
  return a.what == b.what && a.memory == b.memory && a.form == b.form;
}

// Where both forms are executed alike one row does for both.
void join_forms(std::vector<table_row>& rows) {
  for (table_row& r : rows) {
    if (r.form != call_form::blocking) continue;
    const auto other = std::find_if(rows.begin(), rows.end(), [&](const table_row& o) {
      return o.form == call_form::event && o.what == r.what && o.memory == r.memory &&
             o.bytes == r.bytes && o.backend == r.backend && o.how == r.how && o.slice == r.slice;
    });
    if (other == rows.end()) continue;
    r.form = call_form::any;
    other->backend.clear();
  }
  std::erase_if(rows, [](const table_row& r) { return r.backend.empty(); });
}

// The time of the fastest of one side; 0: it was not measured.
double time_of(const tuned_point& p, const std::string& one, bool of_the_one) {
  for (const tried& t : p.all)
    if ((t.backend == one) == of_the_one) return t.seconds;
  return 0;
}

}  // namespace

std::vector<table_row> rows_of(const std::vector<tuned_point>& points, int ranks, int nodes) {
  std::vector<table_row> all;
  for (std::size_t begin = 0, end; begin < points.size(); begin = end) {
    std::vector<table_row> rows;
    for (end = begin; end < points.size() && same_subject(points[begin], points[end]); ++end)
      rows.push_back(row_of(points[end], ranks, nodes));
    rows = tune::cover_all_sizes(std::move(rows));
    all.insert(all.end(), rows.begin(), rows.end());
  }
  join_forms(all);
  return all;
}

threshold_report evaluate_threshold(const std::vector<tuned_point>& points,
                                    const alternatives& between, std::uint64_t threshold,
                                    bool one_below) {
  threshold_report report{threshold, one_below, 1, 1, {}};
  double sum = 0;
  int counted = 0;
  for (const tuned_point& p : points) {
    if (p.memory != between.memory || p.form == call_form::event) continue;
    const double its = time_of(p, between.one, (p.bytes < threshold) == one_below);
    if (its <= 0) continue;
    const double ratio = its / p.all.front().seconds;
    sum += std::log(ratio);
    ++counted;
    if (ratio <= report.worst) continue;
    report.worst = ratio;
    report.worst_at = std::string(name(p.what)) + " of " + base::print_bytes(p.bytes);
  }
  if (counted > 0) report.mean = std::exp(sum / counted);
  return report;
}

void conclude(tuning_result& result, const tuning_request& wanted, const std::string& flavour) {
  auto& machine = result.table.machine;
  const std::string device = machine.device;
  machine = tune::this_machine();
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  machine.name = host;
  machine.mpi = flavour;
  machine.device = device;
  result.table.rows = rows_of(result.points, result.ranks, result.nodes);
  const auto better = [&](const threshold_report& known, std::uint64_t bytes) {
    const auto below = evaluate_threshold(result.points, result.between, bytes, true);
    const auto above = evaluate_threshold(result.points, result.between, bytes, false);
    const auto& of_two = above.mean < below.mean ? above : below;
    return known.bytes == 0 || of_two.mean < known.mean ? of_two : known;
  };
  constexpr std::uint64_t classic = 64 << 10;
  result.fixed_64k = better({}, classic);
  result.best = result.fixed_64k;
  for (const std::uint64_t bytes : wanted.sizes) result.best = better(result.best, bytes);
}

}  // namespace sucl::bench
