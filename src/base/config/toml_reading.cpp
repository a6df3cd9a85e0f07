// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/config/toml_reading.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>

namespace sucl::base {
namespace {

constexpr std::array<toml_type, 9> toml_types{
    {{toml::node_type::string, accept_string, "a string"},
     {toml::node_type::integer, accept_integer, "an integer"},
     {toml::node_type::floating_point, accept_float, "a float"},
     {toml::node_type::boolean, accept_boolean, "a boolean"},
     {toml::node_type::array, accept_array, "an array"},
     {toml::node_type::table, accept_nothing, "a table"},
     {toml::node_type::date, accept_nothing, "a date"},
     {toml::node_type::time, accept_nothing, "a time of day"},
     {toml::node_type::date_time, accept_nothing, "a date"}}};

// The parser bounds how deep values are nested, but not the tables that dotted keys make, which are
// destroyed one within the other.
void check_keys(std::string_view text, const toml_document& document) {
  constexpr int max_parts = 32;
  constexpr std::string_view ends = "\n=,{}[]";
  int dots = 0, line = 1;
  char quote = 0;
  for (const char c : text) {
    if (c == '\n') ++line;
    if (quote != 0 && c != quote && c != '\n') continue;
    if (c == '"' || c == '\'')
      quote = quote == 0 ? c : 0;
    else if (ends.find(c) != ends.npos)
      dots = quote = 0;
    else if (c == '.' && ++dots == max_parts)
      refuse(document.name + ":" + std::to_string(line),
             "a key has more than " + std::to_string(max_parts) + " parts",
             "No key of SuCL's has more than three.");
  }
}

}  // namespace

std::string origin_of(const toml_document& document, const toml::source_region& region) {
  const auto line = region.begin.line;
  const auto column = region.begin.column;
  const unsigned shift = line == 1 && column > document.shift ? document.shift : 0;
  return document.name + ":" + std::to_string(line) + ":" + std::to_string(column - shift);
}

const toml_type& type_of(const toml::node& node) {
  for (const auto& t : toml_types)
    if (t.type == node.type()) return t;
  return toml_types.back();
}

const toml::table& table_of(const toml::node& node, const toml_document& document,
                            const std::string& key) {
  const toml::table* table = node.as_table();
  if (table == nullptr)
    refuse(origin_of(document, node.source()), key + " is " + type_of(node).name, "Write a table.");
  return *table;
}

std::vector<toml_entry> in_order(const toml::table& table, const toml_document& document) {
  std::vector<std::pair<toml::source_position, toml_entry>> entries;
  for (auto&& [key, node] : table)
    entries.push_back(
        {key.source().begin, {std::string(key.str()), origin_of(document, key.source()), &node}});
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<toml_entry> result;
  for (auto& e : entries) result.push_back(std::move(e.second));
  return result;
}

void check_entries(std::size_t entries, std::size_t most, const char* what,
                   const std::string& origin) {
  if (entries <= most) return;
  refuse(origin,
         "there are " + std::to_string(entries) + " " + what + ", more than the " +
             std::to_string(most) + " that are read",
         "Write fewer; those that nothing reaches can go.");
}

toml::table parse_toml(std::string_view text, const toml_document& document) {
  if (text.size() > max_toml_bytes)
    refuse(document.name,
           "it has " + std::to_string(text.size()) + " bytes, more than the " +
               print_bytes(max_toml_bytes) + " that are read",
           "Write fewer entries, and comments elsewhere.");
  check_keys(text, document);
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& e) {
    refuse(origin_of(document, e.source()), "this is not TOML: " + std::string(e.description()),
           "Correct it there or on the line before; strings need quotes, and every key = value a "
           "line of its own.");
  }
}

}  // namespace sucl::base
