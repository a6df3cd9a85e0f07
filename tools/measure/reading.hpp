// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the sub-commands that measure read from their command lines and surroundings.
#pragma once

#include "command.hpp"

#include <sucl/types.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sucl::tools {

/// Other spellings of names, on the left.
using aliases = std::vector<std::pair<std::string, std::string>>;

/// The enumerators named in a list.
template <class Enum>
std::vector<Enum> read_names(const words& list, const std::vector<Enum>& all, const char* what,
                             const aliases& others = {}) {
  words known;
  for (const Enum value : all) known.emplace_back(name(value));
  for (const auto& other : others) known.push_back(other.first);
  std::vector<Enum> result;
  for (std::string word : list) {
    check_word(word, known, what);
    for (const auto& [other, meaning] : others)
      if (word == other) word = meaning;
    for (const Enum value : all)
      if (word == name(value) && std::find(result.begin(), result.end(), value) == result.end())
        result.push_back(value);
  }
  return result;
}

/// Collectives that can be measured, by name, with commas or apart; "all". Without any: wrong usage
/// with `hint`.
std::vector<kind> read_collectives(const words& list, const char* hint);

/// Files can only be made in folders that exist; better known before than after.
void check_file(const std::string& option, const std::string& file);

/// The name of the MPI library whose rank this process is, as in the names of its modules; "" for a
/// rank of a job without MPI; nothing if it is no rank.
std::optional<std::string> job_flavour();

}  // namespace sucl::tools
