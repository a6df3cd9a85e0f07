// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/config/draft.hpp"
#include "base/error.hpp"
#include "base/system/secure.hpp"

#include <unistd.h>

namespace sucl::base {
namespace {

using words = std::vector<std::string>;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

found_value variable_value(const key_row& row, const std::string& name, const std::string& text) {
  found_value value;
  value.origin = "environment " + name;
  value.texts = (row.accepted & accept_array) != 0 ? split(text, ',') : words{text};
  value.origins.assign(value.texts.size(), value.origin);
  return value;
}

// The known backend whose name the variable continues with, the longest one; else null.
backend_entry* backend_of_variable(draft& d, std::string_view rest) {
  backend_entry* best = nullptr;
  for (auto& b : d.c.backends) {
    const std::string begin = variable_part(b.name) + "_";
    if (rest.size() > begin.size() && rest.substr(0, begin.size()) == begin &&
        (best == nullptr || b.name.size() > best->name.size()))
      best = &b;
  }
  return best;
}

// A variable for one of the keys of every backend makes the backend if there is none.
void make_backend_of_variable(draft& d, const std::string& name) {
  const std::string_view rest = std::string_view(name).substr(backend_prefix.size());
  if (backend_of_variable(d, rest) != nullptr) return;
  for (const std::string& key : keys_below("backends.*.")) {
    const std::string end = "_" + variable_part(key);
    if (rest.size() <= end.size() || rest.substr(rest.size() - end.size()) != end) continue;
    const std::string backend = lower(rest.substr(0, rest.size() - end.size()));
    check_name(backend, "environment " + name);
    std::size_t at = 0;
    while (at < d.c.backends.size() && d.origins.count("backends." + d.c.backends[at].name) != 0)
      ++at;
    put_backend(d, backend, at);
    d.origins["backends." + backend] = "environment " + name;
    return;
  }
}

void load_backend_variable(draft& d, const std::string& name, const std::string& text) {
  const std::string_view rest = std::string_view(name).substr(backend_prefix.size());
  backend_entry* backend = backend_of_variable(d, rest);
  if (backend == nullptr) {
    words known;
    for (const auto& b : d.c.backends) known.push_back(b.name);
    const std::string word = lower(rest.substr(0, rest.find('_')));
    refuse("environment " + name, "there is no backend '" + word + "'",
           did_you_mean(word, known) + " Or give it a module with SUCL_BACKEND_<NAME>_PATH.");
  }
  const std::string key = lower(rest.substr(backend->name.size() + 1));
  const std::string full = "backends." + backend->name + "." + key;
  if (const key_row* row = find_key("backends.*." + key)) {
    apply(d, *row, {&d.c, nullptr, backend, nullptr}, full, variable_value(*row, name, text));
    return;
  }
  const std::string origin = "environment " + name;
  set_backend_setting(d, *backend, key, {{text}, {origin}, origin});
}

bool backend_variable(std::string_view name) {
  return name.substr(0, backend_prefix.size()) == backend_prefix &&
         name.size() > backend_prefix.size();
}

void warn_unknown_variable(draft& d, const std::string& name) {
  words known{"SUCL_CONFIG"};
  for (const auto& row : config_keys())
    if (*row.environment != '\0') known.emplace_back(row.environment);
  const std::string near = nearest(name, known);
  d.c.warnings.push_back(
      "environment " + name + ": no such variable" +
      (near.empty() ? "; it is ignored" : ", it is ignored; did you mean '" + near + "'?"));
}

}  // namespace

// An empty variable counts as not set. Sorted, so that every rank does the same.
void load_environment(draft& d, variables environment) {
  std::sort(environment.begin(), environment.end());
  for (const auto& [name, text] : environment)
    if (!text.empty() && backend_variable(name)) make_backend_of_variable(d, name);
  for (const auto& [name, text] : environment) {
    if (text.empty() || name.compare(0, 5, "SUCL_") != 0) continue;
    if (backend_variable(name)) {
      load_backend_variable(d, name, text);
      continue;
    }
    const auto& keys = config_keys();
    const auto row = std::find_if(keys.begin(), keys.end(),
                                  [&n = name](const key_row& r) { return n == r.environment; });
    if (row == keys.end()) {
      if (!foreign_variable(name)) warn_unknown_variable(d, name);
    } else if (row->group()) {
      load_toml_variable(d, *row, name, text);
    } else {
      apply(d, *row, {&d.c}, row->name, variable_value(*row, name, text));
    }
  }
}

std::string variable_part(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c == '-') c = '_';
  }
  return result;
}

variables sucl_variables() {
  variables result;
  if (raised_privileges()) return result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (text.substr(0, 5) == "SUCL_" && equals != std::string_view::npos)
      result.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

}  // namespace sucl::base
