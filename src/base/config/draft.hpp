// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The configuration on its way from its sources. Only the configuration itself includes this.
#pragma once

#include "base/config/keys.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace sucl::base {

/// A value as it was found: its words, and where each of them stands.
struct found_value {
  std::vector<std::string> texts;
  std::vector<std::string> origins;
  std::string origin;
};

/// A word that must be in a vocabulary, which is complete only at the end.
struct pending_word {
  const key_row* row;
  std::string key;
  std::string text;
  std::string origin;
};

/// The configuration, and what is needed only until it is complete.
struct draft {
  config c;
  std::map<std::string, std::string> origins;  ///< by key
  std::vector<pending_word> pending;  ///< of every source, even where another one goes before it
};

/// Throws unless `name` can be the name of a backend or a platform.
void check_name(const std::string& name, const std::string& origin);

/// Sets a key; `key` is its full name, as in "backends.nccl.path", and `row` describes it.
void apply(draft& d, const key_row& row, const key_target& target, const std::string& key,
           const found_value& value);

/// The backend of this name, new or known, now at index `at`.
backend_entry& put_backend(draft& d, const std::string& name, std::size_t at);

/// Keeps a key that is the backend's own.
void set_backend_setting(draft& d, backend_entry& backend, const std::string& key,
                         const found_value& value);

/// Reads a whole file; `origin` is "file PATH".
void load_toml_file(draft& d, const std::string& text, const std::string& origin);

/// Reads the TOML value of a group of keys from a variable.
void load_toml_variable(draft& d, const key_row& row, const std::string& name,
                        const std::string& text);

void load_environment(draft& d, variables environment);

/// Checks what can be checked only now, and adds the human-readable rows.
void complete(draft& d);

/// Begin of the variables for keys of backends: "SUCL_BACKEND_NCCL_PATH".
inline constexpr std::string_view backend_prefix = "SUCL_BACKEND_";

/// A name as a part of a variable: capitals, with '_' for '-'.
std::string variable_part(std::string_view name);

/// The entry of this name, or null.
template <class Entry>
Entry* find_entry(std::vector<Entry>& entries, std::string_view name) {
  for (auto& e : entries)
    if (e.name == name) return &e;
  return nullptr;
}

/// The entry of this name: a new one, or the existing one moved to index `at`.
template <class Entry>
Entry& entry_at(std::vector<Entry>& entries, const std::string& name, std::size_t at) {
  Entry entry;
  if (Entry* existing = find_entry(entries, name)) {
    entry = std::move(*existing);
    entries.erase(entries.begin() + (existing - entries.data()));
  } else {
    entry.name = name;
  }
  at = std::min(at, entries.size());
  return *entries.insert(entries.begin() + static_cast<std::ptrdiff_t>(at), std::move(entry));
}

}  // namespace sucl::base
