// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include "base/error.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <utility>

namespace sucl::tools {
namespace {

words option_names(const CLI::App& app) {
  words names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// What CLI11 did not match: an option that does not exist, or a word too many.
[[noreturn]] void reject_extras(const CLI::App& app) {
  const words extras = app.remaining();
  const auto option = std::find_if(extras.begin(), extras.end(),
                                   [](const std::string& word) { return word.rfind('-', 0) == 0; });
  if (option == extras.end())
    wrong_usage("'" + extras.front() + "' is one word too many. See " + app.get_name() +
                " --help.");
  const std::string name = option->substr(0, option->find('='));
  wrong_usage("there is no option " + name + ". " + base::did_you_mean(name, option_names(app)));
}

std::function<void(const CLI::App&)>& app_reader() {
  static std::function<void(const CLI::App&)> reader;
  return reader;
}

}  // namespace

void read_apps(std::function<void(const CLI::App&)> read) { app_reader() = std::move(read); }

void wrong_usage(const std::string& text) { throw exit_error(exit_code::usage, text); }

bool parse(CLI::App& app, const words& arguments) {
  if (app_reader()) {
    app_reader()(app);
    return false;
  }
  app.allow_extras();
  words reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    std::string text = app.help();
    // A group that is not shown leaves its empty line behind.
    if (const auto gap = text.find("\n\n\n"); gap != std::string::npos) text.erase(gap, 1);
    std::fputs(text.c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& e) {
    // A slip in an option can make another one seem to lack its value; the slip is the cause.
    if (!app.remaining().empty()) reject_extras(app);
    wrong_usage(std::string(e.what()) + ". See " + app.get_name() + " --help.");
  }
  if (!app.remaining().empty()) reject_extras(app);
  return true;
}

void check_word(const std::string& word, const words& known, const std::string& what) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  wrong_usage("there is no " + what + " '" + word + "'. " + base::did_you_mean(word, known));
}

int run_part(const words& arguments, const std::vector<command_entry>& parts, int (*help)(),
             const std::string& what) {
  if (arguments.empty()) {
    help();
    return exit_code::usage;
  }
  const std::string& first = arguments.front();
  if (first == "-h" || first == "--help") return help();
  words names{"--help"};
  for (const command_entry& one : parts) {
    if (first == one.name) return one.run({arguments.begin() + 1, arguments.end()});
    names.emplace_back(one.name);
  }
  check_word(first, names, first.front() == '-' ? "option" : what);
  return exit_code::usage;
}

const words& process_arguments() {
  static const words arguments = [] {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    words command;
    for (const char* word = bytes.data(); word < bytes.data() + bytes.size();
         word += command.back().size() + 1)
      command.emplace_back(word);
    return command;
  }();
  return arguments;
}

std::vector<char*> raw_arguments(const words& command) {
  std::vector<char*> raw;
  for (const std::string& word : command) raw.push_back(const_cast<char*>(word.c_str()));
  raw.push_back(nullptr);
  return raw;
}

std::string shell_quoted(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-+=./:,%@").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_quoted(const words& command) {
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + shell_quoted(word);
  return text;
}

}  // namespace sucl::tools
