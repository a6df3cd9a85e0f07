// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "pictures/wires.hpp"
#include "source.hpp"
#include "terminal/format.hpp"

#include "sim/model/machine.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace sucl::tools {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* machines_examples =
    "A description is a TOML file: levels with group sizes, latency, bandwidth, NICs, transports,\n"
    "and what a rank's memory and kernels do; or a graph of links between ranks and switches.\n"
    "--machine takes a name of the list or a file.\n\n"
    "Examples:\n"
    "  sucl plan machines\n"
    "  sucl plan machines frontier > mine.toml\n"
    "  sucl plan machines mi250-x2 --svg mi250.svg\n"
    "  sucl plan machines --measure          writes 'this', the machine this runs on";

void list_machines(const std::string& json_file) {
  json list = json::array();
  std::vector<std::vector<std::string>> rows;
  for (const sim::machine_summary& m : sim::shipped_machines()) {
    rows.push_back({m.name, std::to_string(m.ranks), m.summary});
    list.push_back(
        {{"name", m.name}, {"ranks", m.ranks}, {"summary", m.summary}, {"file", m.file}});
  }
  if (!json_file.empty()) write_file(json_file, list.dump(2) + "\n");
  if (json_file != "-")
    std::fputs(table({"machine", "ranks", "what it is "}, rows).c_str(), stdout);
}

}  // namespace

int plan_machines(const words& arguments) {
  std::string name, json_file, svg_file;
  bool measure = false;
  int ranks = 0;
  CLI::App app{"Lists the descriptions of machines, or writes one.", "sucl plan machines"};
  app.add_option("MACHINE", name, "Write this one's TOML")->type_name("");
  CLI::Option* measured =
      app.add_flag("--measure", measure, "Measure this machine and keep it as 'this'");
  app.add_option("--ranks", ranks, "Ranks of this machine (one a processor)")
      ->type_name("N")
      ->check(CLI::Range(1, 65536).description(""))
      ->needs(measured);
  app.add_option("--json", json_file, "Write the list as JSON; '-' is standard output")
      ->type_name("FILE");
  app.add_option("--svg", svg_file, "Draw the graph of MACHINE here instead (SVG)")
      ->type_name("FILE");
  app.footer(machines_examples);
  if (!parse(app, arguments)) return exit_code::success;
  if (!svg_file.empty() && name.empty()) wrong_usage("--svg draws one machine: name it.");
  if (!svg_file.empty()) {
    write_file(svg_file, draw_wires(sim::load_machine(name)));
  } else if (measure) {
    const sim::machine m = sim::measure_this_machine(ranks);
    std::printf("wrote %s\n", sim::write_this_machine(m).c_str());
  } else if (!name.empty()) {
    const sim::machine m = sim::load_machine(name);
    for (const sim::machine_summary& shipped : sim::shipped_machines())
      if (shipped.name == name) {
        write_file("-", read_file(shipped.file));
        return exit_code::success;
      }
    write_file("-", sim::to_toml(m));
  } else {
    list_machines(json_file);
  }
  return exit_code::success;
}

}  // namespace sucl::tools
