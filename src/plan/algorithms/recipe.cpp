// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/bounds.hpp"
#include "base/error.hpp"
#include "plan/algorithms/algorithms.hpp"

#include <array>
#include <charconv>

namespace sucl::plan {
namespace {

// The parameters by name: a recipe is written and read through this one table.
using range = base::bounds<std::int64_t>;
struct numbers_row {
  const char* name;
  std::vector<int> recipe::* field;
  range wanted;
};
struct number_row {
  const char* name;
  int recipe::* field;
  range wanted;
};
struct word_row {
  const char* name;
  std::string recipe::* field;
};
constexpr range up_to_ranks{0, max_ranks};
constexpr range factors{1, max_ranks};
// Each of these parameters multiplies the number of instructions of a plan.
constexpr range pieces{1, 4096};
constexpr std::array<numbers_row, 3> numbers_rows{{{"radices", &recipe::radices, factors},
                                                   {"hierarchy", &recipe::hierarchy, factors},
                                                   {"nodes", &recipe::nodes, {0, 0x7fffffff}}}};
constexpr std::array<number_row, 10> number_rows{{{"split", &recipe::split, {-1, 64}},
                                                  {"ports", &recipe::ports, up_to_ranks},
                                                  {"segments", &recipe::segments, pieces},
                                                  {"pipeline", &recipe::pipeline, pieces},
                                                  {"leaders", &recipe::leaders, up_to_ranks},
                                                  {"stripe", &recipe::stripe, pieces},
                                                  {"ring", &recipe::ring, factors},
                                                  {"steps", &recipe::steps, {1, 64}},
                                                  {"fuse", &recipe::fuse, {0, 0x7fffffff}},
                                                  {"stagger", &recipe::stagger, {0, 1}}}};
constexpr std::array<word_row, 2> word_rows{{{"inner", &recipe::inner}, {"outer", &recipe::outer}}};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return parts;
}

std::string join(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& w : words) {
    if (!list.empty()) list += ',';
    list += w;
  }
  return list;
}

int number(std::string_view key, std::string_view word, const range& wanted) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), n);
  if (error != std::errc{} || end != word.data() + word.size())
    base::fail(errc::invalid_argument, "'" + std::string(word) + "' in a recipe is no number",
               "Write it as in 'exchange(radices=4,2;ports=2)'.");
  base::check_bounds("a recipe", std::string(key), n, wanted, errc::invalid_argument);
  return static_cast<int>(n);
}

void set(recipe& r, std::string_view key, std::string_view value) {
  for (const auto& row : numbers_rows) {
    if (key != row.name) continue;
    for (const std::string_view w : split(value, ','))
      (r.*row.field).push_back(number(key, w, row.wanted));
    return;
  }
  for (const auto& row : number_rows)
    if (key == row.name) return void(r.*row.field = number(key, value, row.wanted));
  for (const auto& row : word_rows)
    if (key == row.name) return void(r.*row.field = std::string(value));
  if (key == "via") {
    for (const std::string_view w : split(value, ',')) r.via.emplace_back(w);
    return;
  }
  std::vector<std::string> names{"via"};
  for (const auto& row : numbers_rows) names.push_back(row.name);
  for (const auto& row : number_rows) names.push_back(row.name);
  for (const auto& row : word_rows) names.push_back(row.name);
  base::fail(errc::invalid_argument, "a recipe has no parameter '" + std::string(key) + "'",
             base::did_you_mean(key, names));
}

}  // namespace

std::string to_text(const recipe& r) {
  const recipe none;
  std::string inside;
  const auto add = [&](const char* key, const std::string& value) {
    if (!inside.empty()) inside += ';';
    inside.append(key).append("=").append(value);
  };
  for (const auto& row : numbers_rows) {
    if (r.*row.field == none.*row.field) continue;
    std::vector<std::string> words;
    for (const int n : r.*row.field) words.push_back(std::to_string(n));
    add(row.name, join(words));
  }
  for (const auto& row : number_rows)
    if (r.*row.field != none.*row.field) add(row.name, std::to_string(r.*row.field));
  for (const auto& row : word_rows)
    if (r.*row.field != none.*row.field) add(row.name, r.*row.field);
  if (!r.via.empty()) add("via", join(r.via));
  return inside.empty() ? r.algorithm : r.algorithm + "(" + inside + ")";
}

recipe recipe_from_text(std::string_view text) {
  recipe r;
  const std::size_t open = text.find('(');
  r.algorithm = std::string(text.substr(0, open));
  if (open == std::string_view::npos) return r;
  if (text.back() != ')')
    base::fail(errc::invalid_argument, "a recipe has no ')' at its end: " + std::string(text),
               "Write it as in 'exchange(radices=4,2;ports=2)'.");
  for (const std::string_view part : split(text.substr(open + 1, text.size() - open - 2), ';')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos)
      base::fail(errc::invalid_argument,
                 "a recipe has a part that is no 'parameter=value': " + std::string(part),
                 "Write it as in 'exchange(radices=4,2;ports=2)'.");
    set(r, part.substr(0, equals), part.substr(equals + 1));
  }
  return r;
}

}  // namespace sucl::plan
