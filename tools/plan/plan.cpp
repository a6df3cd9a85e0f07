// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include <array>
#include <cstdio>
#include <vector>

namespace sucl::tools {
namespace {

using plan_sub_command = command_entry;

constexpr std::array sub_commands{
    plan_sub_command{"build", "make the plan of a collective, prove it and write it", plan_build},
    plan_sub_command{"show", "what a plan does, in numbers and pictures", plan_show},
    plan_sub_command{"verify", "prove a plan right, or name its first fault", plan_verify},
    plan_sub_command{"simulate", "predict the time of a plan on a machine", plan_simulate},
    plan_sub_command{"play", "write a page that plays a plan on a machine", plan_play},
    plan_sub_command{"search", "find the best plan for a machine, over message sizes", plan_search},
    plan_sub_command{"compare", "compare recipes, or compute the papers' tables again",
                     plan_compare},
    plan_sub_command{"machines", "list the descriptions of machines, or measure this one",
                     plan_machines},
    plan_sub_command{"algorithms", "list the algorithms and their parameters", plan_algorithms},
};

int print_help() {
  std::puts(
      "Builds, verifies, draws, simulates and searches plans of collectives. Needs no devices and "
      "no\n"
      "ranks.\n\n"
      "Usage: sucl plan COMMAND [options]\n\nCommands:");
  for (const auto& one : sub_commands) std::printf("  %-11s %s\n", one.name, one.summary);
  std::puts(
      "\nA plan is a file, as text or JSON, or a collective with a recipe: --collective, --ranks,\n"
      "--bytes and --recipe. Each command has --help.\n\n"
      "Examples:\n"
      "  sucl plan build --collective broadcast --ranks 12 --bytes 1Mi \\\n"
      "    --recipe 'composed(hierarchy=2,2,3;stripe=3;pipeline=4)' --output broadcast.plan\n"
      "  sucl plan show broadcast.plan --timeline timeline.svg --matrix matrix.svg\n"
      "  sucl plan simulate broadcast.plan --machine perlmutter\n"
      "  sucl plan search --machine frontier --collective allreduce --ranks 64 --bytes 1Mi");
  return exit_code::success;
}

}  // namespace

std::vector<command_entry> plan_commands() { return {sub_commands.begin(), sub_commands.end()}; }

int plan_command(const words& arguments) {
  return run_part(arguments, plan_commands(), print_help, "plan command");
}

}  // namespace sucl::tools
