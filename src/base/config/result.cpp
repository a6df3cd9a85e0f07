// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/config/draft.hpp"
#include "base/error.hpp"

namespace sucl::base {
namespace {

using words = std::vector<std::string>;

std::string origin_or_default(const draft& d, const std::string& key) {
  const auto found = d.origins.find(key);
  return found == d.origins.end() ? "default" : found->second;
}

void check_words(const draft& d) {
  std::map<const vocabulary*, words> all;
  for (const auto& word : d.pending) {
    const vocabulary& vocabulary = *word.row->known;
    const auto [at, added] = all.try_emplace(&vocabulary);
    if (added) at->second = vocabulary.words(d.c);
    const words& known = at->second;
    if (std::find(known.begin(), known.end(), word.text) != known.end()) continue;
    std::string hint = did_you_mean(word.text, known);
    if (*vocabulary.cure != '\0') hint += std::string(" ") + vocabulary.cure;
    refuse(word.origin, word.key + ": there is no " + vocabulary.what + " '" + word.text + "'",
           hint);
  }
}

void check_platforms(const draft& d) {
  std::map<std::pair<int, std::string>, std::string> owners;
  for (const auto& p : d.c.platforms) {
    const auto origin = d.origins.find("platforms." + p.name);
    if (origin == d.origins.end()) continue;  // built in: the user's entries go before it
    int implementation = 0;
    for (const auto* list : {&p.dpcpp, &p.adaptivecpp}) {
      for (const auto& word : *list) {
        const auto [owner, fresh] = owners.insert({{implementation, word}, p.name});
        if (!fresh)
          refuse(origin->second,
                 "platforms." + p.name + " and platforms." + owner->second + " both list '" + word +
                     "'",
                 "A SYCL backend belongs to one platform: remove it from one of them.");
      }
      ++implementation;
    }
  }
}

// An entry that only disables a backend must name an existing one.
void check_disabled_backends(const draft& d) {
  words known;
  for (const auto& b : known_backends()) known.push_back(b.name);
  for (const auto& b : d.c.backends) {
    const bool described = !b.path.empty() || b.platforms != words{"*"} || !b.settings.empty();
    if (b.enabled || described || std::find(known.begin(), known.end(), b.name) != known.end())
      continue;
    refuse(origin_or_default(d, "backends." + b.name + ".enabled"),
           "there is no backend '" + b.name + "' to disable", did_you_mean(b.name, known));
  }
}

// A built-in backend that is off by default is on if something names it.
void enable_named_backends(draft& d) {
  std::map<std::string, std::string> named;
  for (const auto& r : d.c.rules)
    for (const auto& b : r.backends) named.insert({b, "named by a rule"});
  named[d.c.default_backend] = "named by default_backend";
  for (auto& b : d.c.backends) {
    const std::string key = "backends." + b.name + ".enabled";
    if (b.enabled || named.count(b.name) == 0) continue;
    if (const auto set_by_user = d.origins.find(key); set_by_user == d.origins.end()) {
      b.enabled = true;
      d.origins[key] = named[b.name];
    } else if (b.name == d.c.default_backend) {
      refuse(set_by_user->second, key + ": the default backend cannot be disabled",
             "Enable it, or set default_backend to another one.");
    }
  }
}

// The keys of an entry that are not at their defaults, as "bytes = 4Ki..64Ki; backend = mpi".
std::string entry_text(const key_target& target, std::string_view prefix) {
  words parts;
  for (const auto& row : config_keys()) {
    const std::string_view name = row.name;
    if (name.substr(0, prefix.size()) != prefix) continue;
    const std::string value = row.get(target);
    if (value != row.fallback)
      parts.push_back(std::string(name.substr(prefix.size())) + " = " + value);
  }
  return join(parts, "; ");
}

void add_backend_rows(draft& d, backend_entry& b) {
  const std::string prefix = "backends." + b.name + ".";
  const std::string variable = std::string(backend_prefix) + variable_part(b.name) + "_";
  for (const std::string& part : keys_below("backends.*.")) {
    const key_row& row = *find_key("backends.*." + part);
    d.c.rows.push_back({prefix + part, row.get({&d.c, nullptr, &b, nullptr}),
                        origin_or_default(d, prefix + part), variable + variable_part(part),
                        row.help, row.shared});
  }
  for (const auto& [key, value] : b.settings)
    d.c.rows.push_back({prefix + key, value, origin_or_default(d, prefix + key),
                        variable + variable_part(key), "Handed to the backend.", true});
}

void add_group_rows(draft& d, const key_row& row) {
  config& c = d.c;
  const std::string group = row.name;
  if (group == "platforms")
    for (auto& p : c.platforms)
      c.rows.push_back(
          {"platforms." + p.name, entry_text({&c, &p, nullptr, nullptr}, "platforms.*."),
           origin_or_default(d, "platforms." + p.name), row.environment, row.help, row.shared});
  if (group == "backends")
    for (auto& b : c.backends) add_backend_rows(d, b);
  if (group == "rules")
    for (std::size_t i = 0; i < c.rules.size(); ++i)
      c.rows.push_back({"rules[" + std::to_string(i) + "]",
                        entry_text({&c, nullptr, nullptr, &c.rules[i]}, "rules.*."),
                        c.rules[i].origin, row.environment, row.help, row.shared});
}

void add_rows(draft& d) {
  for (const auto& row : config_keys()) {
    if (row.in_entry()) continue;
    if (row.group())
      add_group_rows(d, row);
    else
      d.c.rows.push_back({row.name, row.get({&d.c}), origin_or_default(d, row.name),
                          row.environment, row.help, row.shared});
  }
}

}  // namespace

void complete(draft& d) {
  check_words(d);
  check_platforms(d);
  check_disabled_backends(d);
  enable_named_backends(d);
  add_rows(d);
}

const backend_entry* config::find_backend(backend_role role) const noexcept {
  for (const backend_entry& b : backends)
    if (b.role == role) return &b;
  return nullptr;
}

bool config::has_role(std::string_view name, backend_role role) const noexcept {
  const backend_entry* b = find_backend(name);
  return b && b->role == role;
}

const backend_entry* config::find_backend(std::string_view name) const noexcept {
  for (const auto& b : backends)
    if (b.name == name) return &b;
  return nullptr;
}

// FNV-1a, 64 bits.
std::string shared_values(const config& c) {
  std::string text;
  for (const auto& row : c.rows)
    if (row.shared) text += row.key + " = " + row.value + "\n";
  return text;
}

std::string platform_name(const config& c, sycl_implementation implementation,
                          std::string_view backend) {
  for (const auto& p : c.platforms) {
    const auto& names = implementation == sycl_implementation::dpcpp ? p.dpcpp : p.adaptivecpp;
    if (std::find(names.begin(), names.end(), backend) != names.end()) return p.name;
  }
  return {};
}

std::string keys_markdown() {
  const auto code = [](const std::string& text) {
    return text.empty() ? std::string() : "`" + text + "`";
  };
  std::string text =
      "| Key | Value | Default | Environment | Same on all ranks | Meaning |\n"
      "|---|---|---|---|---|---|\n";
  for (const auto& row : config_keys()) {
    std::string key = row.name;
    if (const auto star = key.find('*'); star != std::string::npos) key.replace(star, 1, "NAME");
    if (key.compare(0, 10, "rules.NAME") == 0) key.replace(0, 10, "rules");
    text += "| " + code(key) + " | " + row.form + " | " + code(row.fallback) + " | " +
            code(row.environment) + " | " + (row.shared ? "yes" : "no") + " | " + row.help + " |\n";
  }
  return text;
}

}  // namespace sucl::base
