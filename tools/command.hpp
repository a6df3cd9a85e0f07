// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What the sub-commands of the program share: parsing, and how they fail.
#pragma once

#include <sucl/error.hpp>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sucl::tools {

using words = std::vector<std::string>;

/// Exit codes of the program; `sucl run` otherwise has the job's.
enum exit_code : int { success = 0, failure = 1, usage = 2, not_found = 127 };

/// Ends the program with a message and a code: usage if the command line is wrong.
class exit_error : public std::runtime_error {
 public:
  exit_error(exit_code code, const std::string& text) : std::runtime_error(text), m_code(code) {}
  exit_code code() const noexcept { return m_code; }

 private:
  exit_code m_code;
};

/// Throws exit_error with exit_code::usage.
[[noreturn]] void wrong_usage(const std::string& text);

/// Parses the words after the sub-command. Returns false if help was asked for, which is printed
/// then. A wrong word ends in wrong_usage(), with the nearest option for one that does not exist.
bool parse(CLI::App& app, const words& arguments);

/// From now on parse() hands what describes a command to `read`, and returns false; with nothing it
/// parses again.
void read_apps(std::function<void(const CLI::App&)> read);

/// A command as lists show it.
struct command_entry {
  const char* name;
  const char* summary;  ///< empty: it is not shown
  int (*run)(const words&);
};
/// Those of the program, of `sucl plan` and of `sucl trace`, that are shown.
std::vector<command_entry> top_commands();
std::vector<command_entry> plan_commands();
std::vector<command_entry> trace_commands();
/// Runs the one of `parts` that the first word names. `help` prints what they are; `what`: "plan
/// command".
int run_part(const words& arguments, const std::vector<command_entry>& parts, int (*help)(),
             const std::string& what);

/// Ends in wrong_usage() if `word` is not one of `known`: "there is no collective 'allredcue'. Did
/// you mean 'allreduce'?".
void check_word(const std::string& word, const words& known, const std::string& what);

/// What `read` returns; its sucl::error becomes wrong_usage() that names the option.
template <class Read>
auto read_option(const std::string& option, Read&& read) {
  try {
    return read();
  } catch (const error& e) {
    wrong_usage(option + ": " + e.message() + ". " + e.hint());
  }
}

/// The command line of this process, its name first.
const words& process_arguments();

/// The form that execv wants; it points into `command`.
std::vector<char*> raw_arguments(const words& command);

/// A word, or several, as a POSIX shell wants them.
std::string shell_quoted(const std::string& word);
std::string shell_quoted(const words& command);

/// The sub-commands, each with the words that follow its name. They return the exit code.
int run_command(const words& arguments);
int info_command(const words& arguments);
int bench_command(const words& arguments);
int plan_command(const words& arguments);
int tune_command(const words& arguments);
int doctor_command(const words& arguments);
int trace_command(const words& arguments);
int dump_command(const words& arguments);
int diagnose_command(const words& arguments);
int describe_command(const words& arguments);    ///< for the installation alone
int probe_command(const words& arguments);       ///< for `sucl info` alone: loads one module
int watch_rank_command(const words& arguments);  ///< for launch() alone: runs one rank

}  // namespace sucl::tools
