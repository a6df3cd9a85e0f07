// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The one table of configuration keys: parsing, the environment, errors, `sucl info` and the
/// documentation all read it. Only the configuration itself includes this.
#pragma once

#include "base/config/config.hpp"

#include <functional>
#include <string>
#include <vector>

namespace sucl::base {

/// What a key is written to: the configuration, and the entry at hand for keys inside entries.
struct key_target {
  config* all = nullptr;
  platform_entry* platform = nullptr;
  backend_entry* backend = nullptr;
  rule* selection = nullptr;
};

/// Types that a value may have in a file, as bits.
enum : unsigned {
  accept_string = 1,
  accept_integer = 2,
  accept_float = 4,
  accept_boolean = 8,
  accept_array = 16,
  accept_nothing = 0  ///< a group of keys, which has no value of its own
};

/// Words that a value may use.
struct vocabulary {
  const char* what;  ///< as in "backend"
  std::vector<std::string> (*words)(const config&);
  const char* cure;  ///< what else could be done; may be ""
};

/// A key. In names a star stands for the name of an entry, or for the number of a rule.
struct key_row {
  const char* name;
  const char* form;      ///< what is written, human-readable: "size"
  const char* example;   ///< a value as in a file
  const char* fallback;  ///< the default, as in an environment variable
  const char* environment;
  const char* help;
  bool shared;
  unsigned accepted;
  const vocabulary* known;  ///< null if any word will do
  std::function<void(const key_target&, const std::vector<std::string>&)> set;
  std::function<std::string(const key_target&)> get;

  bool group() const noexcept { return accepted == accept_nothing; }
  bool in_entry() const noexcept;
};

/// All keys, in the order in which they are shown.
const std::vector<key_row>& config_keys();

/// The key of this name, or null.
const key_row* find_key(std::string_view name);

/// The last parts of the keys that begin with `prefix`, which ends in a dot or is empty.
std::vector<std::string> keys_below(std::string_view prefix);

/// The platforms that exist without being configured.
std::vector<platform_entry> built_in_platforms();

/// Whether a variable of this name belongs to another part of SuCL.
bool foreign_variable(std::string_view name);

}  // namespace sucl::base
