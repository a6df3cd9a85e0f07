// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "plan/pictures/picture.hpp"
#include "simulation.hpp"
#include "source.hpp"
#include "terminal/format.hpp"
#include "terminal/progress.hpp"

#include "plan/verify/verify.hpp"
#include "sim/simulate.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace sucl::tools {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t uses_shown = 8;

constexpr const char* simulate_examples =
    "The plan is proved first. The throughput is HiCCL's: the larger buffer over the time.\n\n"
    "Examples:\n"
    "  sucl plan simulate plan.json --machine perlmutter\n"
    "  sucl plan simulate --collective broadcast --ranks 16 --bytes 64Mi --machine frontier \\\n"
    "    --recipe 'composed(hierarchy=2,4,2;stripe=8;pipeline=16)' --timeline timeline.svg";

json as_json(const plan::schedule& s, const sim::machine& m, const sim::prediction& p) {
  json levels = json::array();
  for (std::size_t l = 0; l < m.levels.size(); ++l)
    levels.push_back({{"name", m.levels[l].name},
                      {"messages", p.levels[l].messages},
                      {"bytes", p.levels[l].bytes}});
  json uses = json::array();
  for (const sim::usage& u : busiest(p, uses_shown))
    uses.push_back({{"what", use_name(u, m)},
                    {"bytes", u.bytes},
                    {"bytes_per_second", u.capacity},
                    {"utilisation", u.utilisation(p.seconds)}});
  return {{"machine", m.name},
          {"collective", sucl::name(s.what.kind)},
          {"ranks", s.what.ranks},
          {"algorithm", s.algorithm},
          {"seconds", p.seconds},
          {"bytes_per_second", throughput(s.what, p.seconds)},
          {"rank_seconds", p.rank_seconds},
          {"levels", levels},
          {"busiest", uses},
          {"events", p.events}};
}

void print(const plan::schedule& s, const sim::machine& m, const sim::prediction& p) {
  std::printf("%s of %d ranks on %s, %s\n%s, %s GB/s\n\n", sucl::name(s.what.kind), s.what.ranks,
              m.name.c_str(), s.algorithm.c_str(), time_text(p.seconds).c_str(),
              number_text(throughput(s.what, p.seconds) / 1e9).c_str());
  std::vector<std::vector<std::string>> rows;
  for (std::size_t l = 0; l < m.levels.size(); ++l)
    rows.push_back(
        {m.levels[l].name, std::to_string(p.levels[l].messages), bytes_text(p.levels[l].bytes)});
  std::fputs(table({"level", "messages", "bytes"}, rows).c_str(), stdout);
  rows.clear();
  for (const sim::usage& u : busiest(p, uses_shown))
    rows.push_back({use_name(u, m), number_text(u.utilisation(p.seconds) * 100) + " %",
                    bytes_text(static_cast<std::uint64_t>(u.bytes)),
                    number_text(u.capacity / 1e9)});
  std::printf("\n%s", table({"busiest", "of the time", "bytes", "GB/s"}, rows).c_str());
}

timeline bars_of(const sim::prediction& p) {
  timeline t;
  t.timed = true;
  for (std::size_t r = 0; r < p.timeline.size(); ++r)
    for (std::size_t c = 0; c < p.timeline[r].size(); ++c)
      for (std::size_t i = 0; i < p.timeline[r][c].size(); ++i)
        t.bars.push_back({static_cast<int>(r), static_cast<int>(c), static_cast<std::uint32_t>(i),
                          p.timeline[r][c][i].start, p.timeline[r][c][i].end});
  return t;
}

}  // namespace

int plan_simulate(const words& arguments) {
  source_options source;
  std::string machine_name, json_file, timeline_file;
  int drawn = 32;
  CLI::App app{"Predicts the time of a plan on a machine.", "sucl plan simulate"};
  define(app, source);
  define_machine(app, machine_name);
  define_effort(app, source);
  app.add_option("--timeline", timeline_file, "Draw what each rank does when (SVG)")
      ->type_name("FILE");
  app.add_option("--drawn-ranks", drawn, "Ranks in the timeline (32)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096).description(""));
  app.add_option("--json", json_file, "Write the prediction as JSON; '-' is standard output")
      ->type_name("FILE");
  app.footer(simulate_examples);
  if (!parse(app, arguments)) return exit_code::success;
  const sim::machine m = read_machine(machine_name);
  const progress shown("sucl plan simulate");
  const plan::schedule s = read_plan(source);
  shown.at("proving");
  if (const plan::verdict v = prove(s, source); !v) {
    std::fprintf(stderr, "sucl: the plan is wrong: %s\n", v.message.c_str());
    return exit_code::failure;
  }
  shown.at("simulating " + std::to_string(plan::instruction_count(s)) + " instructions");
  sim::simulate_options options{!timeline_file.empty(), false, true};
  options.max_work = static_cast<std::uint64_t>(source.effort);
  const sim::prediction p = simulate_within(s, m, options);
  if (!json_file.empty()) write_file(json_file, as_json(s, m, p).dump(2) + "\n");
  if (!timeline_file.empty()) write_file(timeline_file, draw_timeline(s, bars_of(p), drawn));
  if (json_file != "-" && timeline_file != "-") print(s, m, p);
  return exit_code::success;
}

}  // namespace sucl::tools
