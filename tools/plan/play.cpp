// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "html_page.hpp"
#include "plan/play_page.hpp"
#include "simulation.hpp"
#include "source.hpp"
#include "terminal/format.hpp"
#include "terminal/progress.hpp"

#include "base/error.hpp"
#include "plan/ir/traffic.hpp"
#include "plan/serialization/text.hpp"
#include "plan/verify/verify.hpp"
#include "sim/simulate.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstdio>

namespace sucl::tools {
namespace {

constexpr std::uint64_t max_played = 200'000;  // instructions: a page of about 20 MB
constexpr std::size_t limits_listed = 24;

constexpr const char* play_examples =
    "The page needs no network and no other file. It shows the ranks where the machine has them, "
    "the bytes in flight at each time, the load of ports and links, and the instructions of a "
    "rank. The plan is proved first.\n\n"
    "Examples:\n"
    "  sucl plan play plan.json --machine perlmutter\n"
    "  sucl plan play --collective allreduce --ranks 8 --bytes 1Mi --recipe ring \\\n"
    "    --machine dgx-h100 --output ring.html\n\n"
    "Exit code: 0, or 1 if the plan is wrong.";

// What the page has to know of the machine, from the outside to the ranks.
nlohmann::json machine_data(const sim::machine& m) {
  nlohmann::json levels = nlohmann::json::array();
  for (std::size_t l = 0; l < m.levels.size(); ++l) {
    const sim::level& one = m.levels[l];
    levels.push_back({{"name", one.name},
                      {"groups", one.groups},
                      {"members", sim::member_ranks(m, l)},
                      {"ports", one.ports},
                      {"binding", one.binding},
                      {"port_bandwidth", one.port_bandwidth},
                      {"link_bandwidth", one.link_bandwidth}});
  }
  return {{"name", m.name}, {"levels", levels}};
}

// [text, start, end] of every instruction.
nlohmann::json instruction_data(const plan::schedule& s, const sim::prediction& p) {
  nlohmann::json ranks = nlohmann::json::array();
  for (std::size_t r = 0; r < s.ranks.size(); ++r) {
    nlohmann::json channels = nlohmann::json::array();
    for (std::size_t c = 0; c < s.ranks[r].channels.size(); ++c) {
      nlohmann::json list = nlohmann::json::array();
      for (std::size_t i = 0; i < s.ranks[r].channels[c].size(); ++i) {
        const sim::span& when = p.timeline[r][c][i];
        list.push_back({plan::to_text(s.ranks[r].channels[c][i]), when.start, when.end});
      }
      channels.push_back(std::move(list));
    }
    ranks.push_back(std::move(channels));
  }
  return ranks;
}

// [from, to, bytes, rank, channel, instruction] of everything that goes from a rank to another; its
// times are those of the instruction.
nlohmann::json message_data(const plan::schedule& s) {
  nlohmann::json list = nlohmann::json::array();
  for (std::size_t r = 0; r < s.ranks.size(); ++r)
    for (std::size_t c = 0; c < s.ranks[r].channels.size(); ++c)
      for (std::size_t i = 0; i < s.ranks[r].channels[c].size(); ++i) {
        const plan::flow f = plan::flow_of(s.ranks[r].channels[c][i], static_cast<int>(r));
        if (f.from >= 0) list.push_back({f.from, f.to, f.bytes, r, c, i});
      }
  return list;
}

nlohmann::json limit_data(const sim::prediction& p, const sim::machine& m) {
  nlohmann::json list = nlohmann::json::array();
  for (const sim::usage& u : busiest(p, limits_listed))
    list.push_back({use_name(u, m), u.bytes, u.capacity, u.utilisation(p.seconds)});
  return list;
}

std::string play_title(const plan::schedule& s) {
  return std::string(sucl::name(s.what.kind)) + " of " + std::to_string(s.what.ranks) + " ranks, " +
         bytes_text(s.what.counts[0] * s.what.element_bytes) + ", " + s.algorithm;
}

}  // namespace

int plan_play(const words& arguments) {
  source_options source;
  std::string machine_name, output = "plan.html";
  CLI::App app{"Writes a page that plays a plan on a machine, as the simulator times it.",
               "sucl plan play"};
  define(app, source);
  define_machine(app, machine_name);
  define_effort(app, source);
  app.add_option("-o,--output", output, "The page; '-' is standard output")
      ->capture_default_str()
      ->type_name("FILE");
  app.footer(play_examples);
  if (!parse(app, arguments)) return exit_code::success;
  const sim::machine m = read_machine(machine_name);
  const progress shown("sucl plan play");
  const plan::schedule s = read_plan(source);
  const std::uint64_t instructions = plan::instruction_count(s);
  if (instructions > max_played)
    base::fail(errc::invalid_argument,
               "the plan has " + std::to_string(instructions) + " instructions, more than the " +
                   std::to_string(max_played) + " that a page has",
               "Take fewer ranks or chunks.");
  shown.at("proving");
  if (const plan::verdict v = prove(s, source); !v) {
    std::fprintf(stderr, "sucl: the plan is wrong: %s\n", v.message.c_str());
    return exit_code::failure;
  }
  shown.at("simulating " + std::to_string(instructions) + " instructions");
  sim::simulate_options options;
  options.timeline = options.usage = true;
  options.max_work = static_cast<std::uint64_t>(source.effort);
  const sim::prediction p = simulate_within(s, m, options);
  const nlohmann::json messages = message_data(s);
  const nlohmann::json data{{"title", play_title(s)},     {"seconds", p.seconds},
                            {"machine", machine_data(m)}, {"ranks", instruction_data(s, p)},
                            {"messages", messages},       {"limits", limit_data(p, m)}};
  write_file(output, fill_page(play_page, data));
  if (output != "-")
    std::printf("%s: %s on %s, %s, %zu messages\n", output.c_str(), play_title(s).c_str(),
                m.name.c_str(), time_text(p.seconds).c_str(), messages.size());
  return exit_code::success;
}

}  // namespace sucl::tools
