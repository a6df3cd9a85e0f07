// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "command.hpp"
#include "html_page.hpp"
#include "trace/timeline.hpp"
#include "trace/timeline_page.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <string>

namespace sucl::tools {
namespace {

constexpr const char* view_examples =
    "The page needs no network and no other file. It has a row for each rank: what its operations "
    "do, how long they wait for the last rank, and the critical path, which the end of the job "
    "hangs on.\n\n"
    "Examples:\n"
    "  sucl run -n 4 --trace t.%r.json -- ./solver && sucl trace view t.*.json\n"
    "  sucl trace view t.*.json --output solver.html\n\n"
    "Exit code: 0, or 1 if a file is no trace.";

void write_page(const std::string& file, const nlohmann::json& data) {
  std::ofstream out(file, std::ios::binary);
  out << fill_page(timeline_page, data);
  if (!out.flush())
    throw exit_error(exit_code::failure,
                     "cannot write '" + file + "'. Name a file of your own with --output.");
}

int view_command(const words& arguments) {
  words files;
  std::string output = "trace.html";
  CLI::App app{"Writes a page with the timeline of all ranks, from the traces of SUCL_TRACE.",
               "sucl trace view"};
  app.add_option("FILE", files, "Traces, one for each rank")->required();
  app.add_option("-o,--output", output, "The page")->capture_default_str()->type_name("FILE");
  app.footer(view_examples);
  if (!parse(app, arguments)) return exit_code::success;
  const job_timeline all = read_traces(files);
  write_page(output, page_data(all));
  std::printf("%s: critical path: %s\n", output.c_str(), describe_path(all).c_str());
  return exit_code::success;
}

constexpr command_entry view_entry{"view", "write a page with the timeline of all ranks",
                                   view_command};

int print_trace_help() {
  std::printf(
      "Draws what the traces of a job say, those of SUCL_TRACE.\n\n"
      "Usage: sucl trace COMMAND [options]\n\nCommands:\n  %s  %s\n\n"
      "Each command has --help.\n\n"
      "Examples:\n"
      "  sucl trace view t.*.json --output trace.html\n",
      view_entry.name, view_entry.summary);
  return exit_code::success;
}

}  // namespace

std::vector<command_entry> trace_commands() { return {view_entry}; }

int trace_command(const words& arguments) {
  return run_part(arguments, trace_commands(), print_trace_help, "trace command");
}

}  // namespace sucl::tools
