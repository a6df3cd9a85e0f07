// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include "base/error.hpp"

#include <sucl/version.hpp>

#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace {

using namespace sucl::tools;

using sub_command = command_entry;

int help_command(const words& arguments);
int version_command(const words&) {
  std::puts("sucl " SUCL_VERSION_STRING);
  return exit_code::success;
}

constexpr std::array sub_commands{
    sub_command{"run", "start a program as several ranks, with the right environment", run_command},
    sub_command{"info", "show devices, MPI libraries, backends and the configuration",
                info_command},
    sub_command{"bench", "measure collectives, validated and compared with what others do",
                bench_command},
    sub_command{"plan", "make, prove, draw and choose the plans of collectives", plan_command},
    sub_command{"tune", "benchmark the backends and write a tuning table", tune_command},
    sub_command{"doctor", "say what makes SuCL slow here, or does not work, and how to mend it",
                doctor_command},
    sub_command{"trace", "draw the timeline of all ranks", trace_command},
    sub_command{"diagnose", "name ranks that are late, missing or wrong, from their records",
                diagnose_command},
    sub_command{"dump", "write what running ranks have recorded", dump_command},
    sub_command{"help", "show the help of a sub-command", help_command},
    sub_command{"version", "", version_command},
    sub_command{"probe", "", probe_command},
    sub_command{"describe", "", describe_command},
    sub_command{"watch-rank", "", watch_rank_command},
};

const sub_command* find(const std::string& name) {
  for (const auto& one : sub_commands)
    if (name == one.name) return &one;
  return nullptr;
}

int print_help() {
  std::printf(
      "SuCL %s: collectives and point-to-point for SYCL programs.\n\n"
      "Usage: sucl COMMAND [options]\n\nCommands:\n",
      SUCL_VERSION_STRING);
  for (const auto& one : sub_commands)
    if (*one.summary) std::printf("  %-8s %s\n", one.name, one.summary);
  std::puts(
      "\nOptions:\n"
      "  -h, --help   this text; after a command its options and examples\n"
      "  --version    the version\n\n"
      "Examples:\n"
      "  sucl info\n"
      "  sucl run -n 4 -- ./my_program input.dat\n"
      "  sucl bench allreduce broadcast -n 2 --against mpi --sizes 4:1Mi\n\n"
      "Exit code: 0 on success, 1 on failure, 2 for a wrong command line; of run: the job's.");
  return exit_code::success;
}

int help_command(const words& arguments) {
  if (arguments.empty()) return print_help();
  const sub_command* one = find(arguments.front());
  if (one && *one->summary && one->run != help_command) return one->run({"--help"});
  return print_help();
}

int dispatch(const words& arguments) {
  if (arguments.empty()) {
    print_help();
    return exit_code::usage;
  }
  const std::string& first = arguments.front();
  if (first == "-h" || first == "--help") return print_help();
  if (first == "--version" || first == "-V") return version_command({});
  if (const sub_command* one = find(first))
    return one->run({arguments.begin() + 1, arguments.end()});
  words names{"--help", "--version"};
  for (const auto& one : sub_commands)
    if (*one.summary) names.emplace_back(one.name);
  check_word(first, names, first.front() == '-' ? "option" : "command");
  return exit_code::usage;
}

}  // namespace

std::vector<command_entry> sucl::tools::top_commands() {
  std::vector<command_entry> shown;
  for (const auto& one : sub_commands)
    if (*one.summary) shown.push_back(one);
  return shown;
}

// start.cpp calls it.
extern "C" __attribute__((visibility("default"))) int sucl_program_main(int argc, char** argv) {
  try {
    return dispatch({argv + 1, argv + argc});
  } catch (const exit_error& e) {
    std::fprintf(stderr, "sucl: %s\n", e.what());
    return e.code();
  } catch (const sucl::error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return exit_code::failure;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "sucl: %s\n", e.what());
    return exit_code::failure;
  }
}
