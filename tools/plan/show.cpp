// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "plan/pictures/picture.hpp"
#include "source.hpp"
#include "terminal/format.hpp"
#include "terminal/progress.hpp"

#include "plan/ir/traffic.hpp"
#include "plan/serialization/text.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace sucl::tools {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* show_examples =
    "Without a machine the timeline shows the order of instructions; 'sucl plan simulate' draws "
    "it\n"
    "in time.\n\n"
    "Examples:\n"
    "  sucl plan show plan.json\n"
    "  sucl plan show plan.json --rank 0 --rank 5\n"
    "  sucl plan show --collective broadcast --ranks 12 --bytes 1Mi \\\n"
    "    --recipe 'composed(hierarchy=4,3;stripe=3;ring=4;pipeline=5)' --matrix ring.svg";

struct level_numbers {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t most = 0;  // bytes that one rank sends
};

struct numbers {
  std::array<std::uint64_t, plan::opcode_count> instructions{};
  std::uint64_t scratch = 0;  // most of a rank
  std::vector<level_numbers> levels;
};

numbers count(const plan::schedule& s) {
  numbers n;
  for (const plan::program& p : s.ranks) {
    n.scratch = std::max(n.scratch, p.scratch_bytes);
    for (const plan::channel& c : p.channels)
      for (const plan::instruction& i : c) ++n.instructions[static_cast<std::size_t>(i.op)];
  }
  n.levels.resize(s.levels.size());
  std::vector<std::uint64_t> sent(s.levels.size());  // by the rank at hand, for each level
  int rank = -1;
  for (const plan::flow& f : plan::traffic(s)) {  // by sender
    if (f.from != std::exchange(rank, f.from)) std::fill(sent.begin(), sent.end(), 0);
    const auto level = static_cast<std::size_t>(f.level);
    n.levels[level].messages += f.messages;
    n.levels[level].bytes += f.bytes;
    n.levels[level].most = std::max(n.levels[level].most, sent[level] += f.bytes);
  }
  return n;
}

json as_json(const plan::schedule& s, const numbers& n) {
  json instructions = json::object();
  for (int op = 0; op < plan::opcode_count; ++op)
    instructions[plan::name(static_cast<plan::opcode>(op))] =
        n.instructions[static_cast<std::size_t>(op)];
  json levels = json::array();
  for (std::size_t l = 0; l < s.levels.size(); ++l)
    levels.push_back({{"name", s.levels[l].name},
                      {"via", s.levels[l].via},
                      {"messages", n.levels[l].messages},
                      {"bytes", n.levels[l].bytes},
                      {"max_bytes_of_a_rank", n.levels[l].most}});
  return {{"collective", sucl::name(s.what.kind)},
          {"ranks", s.what.ranks},
          {"algorithm", s.algorithm},
          {"channels", plan::channel_count(s)},
          {"instructions", instructions},
          {"scratch_bytes", n.scratch},
          {"levels", levels}};
}

void print(const plan::schedule& s, const numbers& n) {
  const plan::problem& p = s.what;
  std::printf("%s of %d ranks, %s\n", sucl::name(p.kind), p.ranks, s.algorithm.c_str());
  std::printf("counts from %llu elements of %llu bytes, channels %d, scratch at most %s a rank\n",
              static_cast<unsigned long long>(p.counts[0]),
              static_cast<unsigned long long>(p.element_bytes), plan::channel_count(s),
              bytes_text(n.scratch).c_str());
  std::string line;
  for (int op = 0; op < plan::opcode_count; ++op)
    if (const std::uint64_t times = n.instructions[static_cast<std::size_t>(op)]; times > 0)
      line += (line.empty() ? "" : ", ") + std::to_string(times) + " " +
              plan::name(static_cast<plan::opcode>(op));
  std::printf("%llu instructions: %s\n\n",
              static_cast<unsigned long long>(plan::instruction_count(s)), line.c_str());
  std::vector<std::vector<std::string>> rows;
  for (std::size_t l = 0; l < s.levels.size(); ++l)
    rows.push_back({s.levels[l].name, s.levels[l].via, std::to_string(n.levels[l].messages),
                    bytes_text(n.levels[l].bytes), bytes_text(n.levels[l].most)});
  std::fputs(table({"level", "via ", "messages", "bytes", "most of a rank"}, rows).c_str(), stdout);
}

void print_program(const plan::schedule& s, int rank) {
  const plan::program& p = s.ranks[static_cast<std::size_t>(rank)];
  for (std::size_t c = 0; c < p.channels.size(); ++c) {
    std::printf("\nrank %d, channel %zu\n", rank, c);
    for (const plan::instruction& i : p.channels[c])
      std::printf("  %s\n", plan::to_text(i).c_str());
  }
}

}  // namespace

int plan_show(const words& arguments) {
  source_options source;
  std::string json_file, timeline_file, matrix_file;
  std::vector<int> ranks;
  int drawn = 32;
  CLI::App app{"Shows what a plan does, in numbers and pictures.", "sucl plan show"};
  define(app, source);
  app.add_option("--rank", ranks, "Print this rank's instructions; may be given again")
      ->type_name("RANK")
      ->allow_extra_args(false);
  app.add_option("--timeline", timeline_file, "Draw the instructions of each rank (SVG)")
      ->type_name("FILE");
  app.add_option("--matrix", matrix_file,
                 "Draw what each rank sends to each other on each level (SVG)")
      ->type_name("FILE");
  app.add_option("--drawn-ranks", drawn, "Ranks in the timeline (32)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096).description(""));
  app.add_option("--json", json_file, "Write the numbers as JSON; '-' is standard output")
      ->type_name("FILE");
  app.footer(show_examples);
  if (!parse(app, arguments)) return exit_code::success;
  const plan::schedule s = read_plan(source);
  for (const int r : ranks)
    if (r < 0 || r >= s.what.ranks)
      wrong_usage("--rank " + std::to_string(r) + ", but the plan has ranks 0 to " +
                  std::to_string(s.what.ranks - 1) + ".");
  const numbers n = count(s);
  if (!json_file.empty()) write_file(json_file, as_json(s, n).dump(2) + "\n");
  if (!timeline_file.empty()) write_file(timeline_file, draw_timeline(s, in_order(s), drawn));
  if (!matrix_file.empty()) write_file(matrix_file, draw_matrix(s));
  if (json_file == "-" || timeline_file == "-" || matrix_file == "-") return exit_code::success;
  print(s, n);
  for (const int r : ranks) print_program(s, r);
  return exit_code::success;
}

}  // namespace sucl::tools
