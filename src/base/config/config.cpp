// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/config/config.hpp"

#include "base/config/draft.hpp"
#include "base/config/toml_reading.hpp"
#include "base/error.hpp"

#include <array>
#include <charconv>

namespace sucl::base {
namespace {

using words = std::vector<std::string>;

std::string text_of(const toml::node& node) {
  if (const auto* s = node.as_string()) return s->get();
  if (const auto* i = node.as_integer()) return std::to_string(i->get());
  if (const auto* b = node.as_boolean()) return b->get() ? "true" : "false";
  std::array<char, 512> digits{};
  const double number = node.as_floating_point()->get();
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), number, std::chars_format::fixed);
  return std::string(digits.data(), end.ptr);
}

// `accepted` holds for the elements of an array too, but arrays in arrays are refused.
found_value value_of(const toml::node& node, const toml_document& document, const std::string& key,
                     unsigned accepted, const std::string& wanted) {
  found_value value;
  value.origin = origin_of(document, node.source());
  const toml_type& type = type_of(node);
  if ((type.accepted & accepted) == 0)
    refuse(value.origin, key + " is " + type.name, "Write " + wanted + ".");
  const toml::array* list = node.as_array();
  if (list == nullptr) {
    value.texts.push_back(text_of(node));
    value.origins.push_back(value.origin);
    return value;
  }
  for (const toml::node& element : *list) {
    const found_value one = value_of(element, document, key, accepted & ~accept_array, wanted);
    value.texts.push_back(one.texts.front());
    value.origins.push_back(one.origin);
  }
  return value;
}

found_value value_of(const toml::node& node, const toml_document& document, const std::string& key,
                     const key_row& row) {
  const std::string last = key.substr(key.rfind('.') + 1);
  return value_of(node, document, key, row.accepted,
                  last + " = " + row.example + " (" + row.form + ")");
}

void refuse_key(const toml_entry& entry, const std::string& prefix, const std::string& pattern) {
  const std::string full = prefix + entry.key;
  words candidates = keys_below(pattern);
  std::string hint = did_you_mean(entry.key, candidates);
  if (nearest(entry.key, candidates).empty() && pattern.find('*') == std::string::npos) {
    // Perhaps the key is right and the table is not.
    for (const auto& row : config_keys()) {
      const std::string_view name = row.name;
      const auto dot = name.rfind('.');
      if (!row.in_entry() && dot != std::string_view::npos && name.substr(dot + 1) == entry.key)
        hint = "It belongs in [" + std::string(name.substr(0, dot)) + "].";
    }
  }
  refuse(entry.origin, "unknown key '" + full + "'", hint);
}

// More than programs need; what is quadratic in them still takes less than a second.
constexpr std::size_t max_rules = 10000, max_platforms = 256, max_backends = 256,
                      max_settings = 1000;

// Keys of one entry of platforms or rules; `pattern` is the prefix in the table of keys.
void fill_entry(draft& d, const toml::table& table, const toml_document& document,
                const key_target& target, const std::string& pattern, const std::string& prefix) {
  for (const auto& entry : in_order(table, document)) {
    const key_row* row = find_key(pattern + entry.key);
    if (row == nullptr || row->group()) refuse_key(entry, prefix, pattern);
    apply(d, *row, target, prefix + entry.key,
          value_of(*entry.node, document, prefix + entry.key, *row));
  }
}

// The user's platforms go before the built-in ones, so that their names are found first.
void fill_platforms(draft& d, const toml::node& node, const toml_document& document) {
  std::size_t at = 0;
  const auto entries = in_order(table_of(node, document, "platforms"), document);
  check_entries(entries.size(), max_platforms, "platforms", origin_of(document, node.source()));
  for (const auto& entry : entries) {
    check_name(entry.key, entry.origin);
    const std::string key = "platforms." + entry.key;
    const toml::table& table = table_of(*entry.node, document, key);
    platform_entry& platform = entry_at(d.c.platforms, entry.key, at++);
    fill_entry(d, table, document, {&d.c, &platform, nullptr, nullptr}, "platforms.*.", key + ".");
    d.origins[key] = entry.origin;
  }
}

void fill_backends(draft& d, const toml::node& node, const toml_document& document) {
  constexpr unsigned plain =
      accept_string | accept_integer | accept_float | accept_boolean | accept_array;
  std::size_t at = 0;
  const auto items = in_order(table_of(node, document, "backends"), document);
  check_entries(items.size(), max_backends, "backends", origin_of(document, node.source()));
  for (const auto& item : items) {
    check_name(item.key, item.origin);
    const std::string prefix = "backends." + item.key + ".";
    const toml::table& table = table_of(*item.node, document, "backends." + item.key);
    backend_entry& backend = put_backend(d, item.key, at++);
    d.origins["backends." + item.key] = item.origin;
    check_entries(table.size(), max_settings, "settings of a backend", item.origin);
    for (const auto& entry : in_order(table, document)) {
      const std::string key = prefix + entry.key;
      if (const key_row* row = find_key("backends.*." + entry.key))
        apply(d, *row, {&d.c, nullptr, &backend, nullptr}, key,
              value_of(*entry.node, document, key, *row));
      else
        set_backend_setting(d, backend, entry.key,
                            value_of(*entry.node, document, key, plain,
                                     "a plain value or a list of them for the backend"));
    }
  }
}

void fill_rules(draft& d, const toml::node& node, const toml_document& document) {
  const toml::array* list = node.as_array();
  if (list == nullptr)
    refuse(origin_of(document, node.source()), std::string("rules is ") + type_of(node).name,
           "Write each rule as a table [[rules]].");
  check_entries(list->size(), max_rules, "rules", origin_of(document, node.source()));
  d.c.rules.clear();
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string key = "rules[" + std::to_string(i) + "]";
    const toml::node& item = *list->get(i);
    rule r;
    r.origin = origin_of(document, item.source());
    fill_entry(d, table_of(item, document, key), document, {&d.c, nullptr, nullptr, &r}, "rules.*.",
               key + ".");
    if (r.backends.empty())
      refuse(r.origin, key + " names no backend", "Add backend = \"NAME\" to it.");
    d.origins[key] = r.origin;
    d.c.rules.push_back(std::move(r));
  }
}

using group_filler = void (*)(draft&, const toml::node&, const toml_document&);

group_filler filler_of(std::string_view key) {
  if (key == "platforms") return fill_platforms;
  if (key == "backends") return fill_backends;
  if (key == "rules") return fill_rules;
  return nullptr;
}

}  // namespace

void load_toml_file(draft& d, const std::string& text, const std::string& origin) {
  const toml_document document{origin, 0};
  const toml::table root = parse_toml(text, document);
  for (const auto& entry : in_order(root, document)) {
    if (const group_filler fill = filler_of(entry.key)) {
      fill(d, *entry.node, document);
      continue;
    }
    const std::string prefix = entry.key + ".";
    if (const key_row* row = find_key(entry.key)) {
      apply(d, *row, {&d.c}, entry.key, value_of(*entry.node, document, entry.key, *row));
    } else if (!keys_below(prefix).empty()) {
      fill_entry(d, table_of(*entry.node, document, entry.key), document, {&d.c}, prefix, prefix);
    } else {
      refuse_key(entry, "", "");
    }
  }
}

void load_toml_variable(draft& d, const key_row& row, const std::string& name,
                        const std::string& text) {
  const std::string before = std::string(row.name) + " = ";
  const toml_document document{"environment " + name, static_cast<unsigned>(before.size())};
  const toml::table root = parse_toml(before + text, document);
  if (root.size() != 1)
    refuse(document.name, "this is more than one TOML value",
           "Write one value, as after " + std::string(row.name) + " = in a file.");
  filler_of(row.name)(d, *root.get(row.name), document);
}

}  // namespace sucl::base
