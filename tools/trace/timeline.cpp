// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "trace/timeline.hpp"

#include "base/system/file.hpp"
#include "command.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace sucl::tools {
namespace {

using nlohmann::json;

constexpr std::size_t max_trace_bytes = std::size_t{1} << 30;

[[noreturn]] void refuse_trace(const std::string& file, const std::string& why) {
  throw exit_error(exit_code::failure,
                   "'" + file + "' is no trace of a rank: " + why +
                       ". Name files that SUCL_TRACE or `sucl run --trace` has written.");
}

traced_operation operation_of(const json& event) {
  const json& a = event.at("args");
  traced_operation o;
  o.rank = event.at("pid");
  o.thread = event.at("tid");
  o.name = event.at("name");
  o.collective = event.at("cat") == "collective";
  o.type = a.at("type");
  o.op = a.at("op");
  o.backend = a.at("backend");
  o.status = a.at("status");
  o.communicator = a.at("communicator");
  o.sequence = a.at("sequence");
  o.bytes = a.at("bytes");
  o.issued = a.at("issued_us");
  o.posted = o.all_posted = a.at("posted_us");
  o.done = a.at("done_us");
  o.last = o.rank;
  return o;
}

void read_trace(const std::string& file, std::vector<traced_operation>& to) {
  const base::file_content content = base::read_regular_file(file, max_trace_bytes);
  if (!content.problem.empty()) refuse_trace(file, content.problem);
  try {
    for (const json& event : json::parse(content.text))
      if (event.at("ph") == "X") to.push_back(operation_of(event));
  } catch (const json::exception& e) {
    refuse_trace(file, e.what());
  }
}

// The last rank that posts a collective ends the waiting of all. A replayed one has the number of
// what was recorded, so it counts how often that has come before.
void find_waiting(job_timeline& all) {
  using identity = std::tuple<std::uint64_t, std::string, std::uint64_t, std::size_t>;
  std::map<identity, std::vector<std::size_t>> calls;
  std::map<std::tuple<int, std::uint64_t, std::string, std::uint64_t>, std::size_t> before;
  for (std::size_t i = 0; i < all.operations.size(); ++i) {
    const traced_operation& o = all.operations[i];
    if (!o.collective) continue;
    const std::size_t times = before[{o.rank, o.communicator, o.name, o.sequence}]++;
    calls[{o.communicator, o.name, o.sequence, times}].push_back(i);
  }
  for (const auto& [identity, ranks] : calls) {
    const auto& last = all.operations[*std::max_element(
        ranks.begin(), ranks.end(), [&](std::size_t a, std::size_t b) {
          return all.operations[a].posted < all.operations[b].posted;
        })];
    for (const std::size_t i : ranks) {
      traced_operation& o = all.operations[i];
      o.all_posted = std::clamp(last.posted, o.posted, std::max(o.posted, o.done));
      o.last = last.rank;
    }
  }
}

// What has ended last on a rank, of what was over at `time` and is not on the path yet.
std::ptrdiff_t last_before(const job_timeline& all, int rank, double time,
                           const std::set<std::ptrdiff_t>& seen) {
  const auto end =
      std::upper_bound(all.operations.begin(), all.operations.end(), std::pair{rank, time},
                       [](const auto& limit, const traced_operation& o) {
                         return limit < std::pair{o.rank, o.done};
                       });
  for (auto at = end - all.operations.begin() - 1;
       at >= 0 && all.operations[static_cast<std::size_t>(at)].rank == rank; --at)
    if (!seen.count(at)) return at;
  return -1;
}

// Back from what ends last: an operation hangs on the rank that has come to it last, and that one
// on its own program and the operation before.
void find_path(job_timeline& all) {
  if (all.operations.empty()) return;
  std::ptrdiff_t at =
      std::max_element(all.operations.begin(), all.operations.end(),
                       [](const auto& a, const auto& b) { return a.done < b.done; }) -
      all.operations.begin();
  std::set<std::ptrdiff_t> seen;
  while (at >= 0) {
    seen.insert(at);
    const traced_operation& o = all.operations[static_cast<std::size_t>(at)];
    all.path.push_back({o.rank, o.all_posted, o.done, at});
    const int rank = o.all_posted > o.posted ? o.last : o.rank;
    const double begun = o.all_posted;
    at = last_before(all, rank, begun, seen);
    const double free = at >= 0 ? all.operations[static_cast<std::size_t>(at)].done : all.begin;
    all.path.push_back({rank, free, begun, -1});
  }
  std::reverse(all.path.begin(), all.path.end());
}

std::string part_name(const job_timeline& all, const critical_piece& p) {
  if (p.operation < 0) return "the program of rank " + std::to_string(p.rank);
  return all.operations[static_cast<std::size_t>(p.operation)].name;
}

std::string milliseconds(double us) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g ms", us / 1000);
  return text.data();
}

}  // namespace

job_timeline read_traces(const std::vector<std::string>& files) {
  job_timeline all;
  std::map<int, std::string> of_rank;
  for (const std::string& file : files) {
    std::vector<traced_operation> found;
    read_trace(file, found);
    if (found.empty()) continue;
    const auto [known, is_new] = of_rank.emplace(found.front().rank, file);
    if (!is_new)
      throw exit_error(exit_code::failure, "'" + known->second + "' and '" + file +
                                               "' are both of rank " +
                                               std::to_string(known->first) +
                                               ". Name one trace for each rank, of one job.");
    all.operations.insert(all.operations.end(), found.begin(), found.end());
  }
  if (all.operations.empty())
    throw exit_error(exit_code::failure, "there is no operation in the traces.");
  std::sort(all.operations.begin(), all.operations.end(), [](const auto& a, const auto& b) {
    return std::tie(a.rank, a.done, a.posted) < std::tie(b.rank, b.done, b.posted);
  });
  all.begin = all.end = all.operations.front().posted;
  for (const auto& o : all.operations) {
    all.begin = std::min({all.begin, o.posted, o.issued});
    all.end = std::max(all.end, o.done);
  }
  find_waiting(all);
  find_path(all);
  return all;
}

json page_data(const job_timeline& all) {
  json operations = json::array(), path = json::array();
  const auto since = [&](double time) { return std::round((time - all.begin) * 1000) / 1000; };
  for (const auto& o : all.operations)
    operations.push_back({o.rank, o.thread, o.name, since(o.issued), since(o.posted),
                          since(o.all_posted), since(o.done), o.last, o.communicator, o.sequence,
                          o.bytes, o.type, o.op, o.backend, o.status});
  for (const auto& p : all.path) path.push_back({p.rank, since(p.from), since(p.to), p.operation});
  return {{"duration", since(all.end)},
          {"operations", std::move(operations)},
          {"path", std::move(path)},
          {"summary", describe_path(all)}};
}

std::string describe_path(const job_timeline& all) {
  std::map<std::string, double> parts;
  for (const auto& p : all.path) parts[part_name(all, p)] += p.to - p.from;
  std::vector<std::pair<double, std::string>> largest;
  for (const auto& [name, time] : parts) largest.emplace_back(time, name);
  std::sort(largest.rbegin(), largest.rend());
  const double whole = all.end - all.begin;
  std::string text = "of " + milliseconds(whole);
  constexpr std::size_t most = 3;
  for (std::size_t i = 0; i < std::min(most, largest.size()); ++i) {
    const int percent =
        whole > 0 ? static_cast<int>(std::lround(100 * largest[i].first / whole)) : 0;
    text += std::string(i ? ", " : " ") + std::to_string(percent) + " % are " + largest[i].second;
  }
  return text;
}

}  // namespace sucl::tools
