// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Reading the command line.
#pragma once

#include "common/program/options.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace CLI {
class App;
}

namespace apps {

/// The options of an application. What a variable holds when its option is added is the default; of
/// an option that is given several times the last one counts.
class command_line {
 public:
  command_line(const std::string& name, const std::string& summary);
  ~command_line();

  /// Adds an option with a value: int, std::int64_t, double or std::string.
  template <class Value>
  void add(const std::string& option, Value& value, const std::string& help,
           const std::string& type);
  void add_flag(const std::string& option, bool& value, const std::string& help);
  /// Adds an option that only others look at.
  void add_foreign(const std::string& option, const std::string& help, const std::string& type);
  /// Adds an option whose value is read by a function; it throws usage_error.
  void add_read(const std::string& option, const std::function<void(const std::string&)>& read,
                const std::string& help, const std::string& type);
  /// Adds an option that takes a size as 256x128x64.
  void add_extents(const std::string& option, extents& value, const std::string& help);
  /// Adds an option that takes one of some words. Other words are a usage_error that lists them.
  template <class Value>
  void add_choice(const std::string& option, Value& value,
                  const std::map<std::string, Value>& choices, const std::string& help,
                  const std::string& type = "NAME");
  /// Of two options at most one can be given.
  void exclude(const std::string& option, const std::string& other);

  /// Parses; returns false if help was asked for, which is printed then. Throws usage_error.
  bool parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> m_app;
};

/// Adds the options that all applications have.
void add_options(command_line& line, options& o);
/// Adds --record, for an application whose iterations can be recorded.
void add_record_option(command_line& line, options& o);
/// Throws usage_error where what --record says does not go with other options.
void validate_record_option(const options& o);

template <class Value>
void command_line::add_choice(const std::string& option, Value& value,
                              const std::map<std::string, Value>& choices, const std::string& help,
                              const std::string& type) {
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
  add_read(option, choose, help, type);
}

}  // namespace apps
