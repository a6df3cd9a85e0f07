// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Reading the command line.
#pragma once

#include "common/options.hpp"

#include <CLI/CLI.hpp>

#include <map>
#include <string>

namespace apps {

/// Adds the common options to those of an application.
void add_options(CLI::App& app, options& o);

/// Adds an option that takes one of some words. Other words are a usage_error that lists them.
template <class Value>
void add_choice(CLI::App& app, const std::string& option, Value& value,
                const std::map<std::string, Value>& choices, const std::string& help,
                const std::string& type = "NAME") {
  const auto choose = [&value, choices, option](const std::string& word) {
    const auto found = choices.find(word);
    if (found != choices.end()) {
      value = found->second;
      return;
    }
    std::string known;
    for (const auto& [name, ignored] : choices) known += (known.empty() ? "" : ", ") + name;
    throw usage_error(option + ": there is no '" + word + "'. Use one of " + known);
  };
  app.add_option_function<std::string>(option, choose, help)->type_name(type);
}

/// Parses; returns false if help was asked for, which is printed then. Throws usage_error.
bool parse(CLI::App& app, int argc, char** argv);

/// Adds an option that takes a size as 256x128x64. What is in `value` is the default.
void add_extents(CLI::App& app, const std::string& option, extents& value, const std::string& help);

}  // namespace apps
