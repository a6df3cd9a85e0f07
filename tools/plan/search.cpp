// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "source.hpp"
#include "terminal/format.hpp"
#include "terminal/progress.hpp"

#include "base/text.hpp"
#include "plan/serialization/text.hpp"
#include "tune/search.hpp"
#include "tune/table/table.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>

namespace sucl::tools {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* search_examples =
    "Considers every algorithm with the parameters that the machine suggests, simulates the most\n"
    "promising plans and refines the best.\n\n"
    "Examples:\n"
    "  sucl plan search --machine frontier --collective allreduce --ranks 64 --bytes 1Mi\n"
    "  sucl plan search --machine frontier --ranks 2048 --bytes 1Gi --json -\n"
    "  sucl plan search --machine perlmutter --ranks 64 --sizes 8:1Gi:4 --toml allreduce.toml\n"
    "  sucl plan search --machine mine.toml --ranks 16 --bytes 8Mi --output best.json";

struct one_size {
  std::uint64_t bytes = 0;
  plan::problem what;
  tune::search_result result;
  double took = 0;
};

json as_json(const tune::found& f, const plan::problem& p) {
  return {{"recipe", plan::to_text(f.how)},
          {"published_as", f.source},
          {"seconds", f.seconds},
          {"bytes_per_second", throughput(p, f.seconds)},
          {"estimated_seconds", f.estimated},
          {"instructions", f.instructions},
          {"scratch_bytes", f.scratch_bytes},
          {"hash", hash_text(f.hash)},
          {"verified", f.verified}};
}

// The predicted time over the lower bound; 0 where there is none.
double gap_of(const one_size& one) {
  const double least = one.result.least.seconds;
  return least > 0 ? one.result.best[0].seconds / least : 0;
}

std::string gap_text(const one_size& one) {
  return gap_of(one) > 0 ? number_text(gap_of(one), 4) : "-";
}

json as_json(const one_size& one) {
  json others = json::array();
  for (std::size_t i = 1; i < one.result.best.size(); ++i)
    others.push_back(as_json(one.result.best[i], one.what));
  return {{"bytes", one.bytes},
          {"best", as_json(one.result.best[0], one.what)},
          {"runners_up", others},
          {"candidates", one.result.candidates},
          {"simulated", one.result.simulated},
          {"bound_seconds", one.result.least.seconds},
          {"bound", one.result.least.why},
          {"gap", gap_of(one)},
          {"took_seconds", one.took}};
}

std::vector<std::string> row(const tune::found& f, const plan::problem& p) {
  return {time_text(f.seconds), number_text(throughput(p, f.seconds) / 1e9),
          std::to_string(f.instructions), f.verified ? "yes" : "no", plan::to_text(f.how)};
}

void print(const one_size& one) {
  std::printf("%s: %d candidates, %d simulated, %s\n", bytes_text(one.bytes).c_str(),
              one.result.candidates, one.result.simulated, time_text(one.took).c_str());
  std::vector<std::vector<std::string>> rows;
  for (const tune::found& f : one.result.best) rows.push_back(row(f, one.what));
  std::fputs(table({"predicted", "GB/s", "instructions", "proved", "recipe "}, rows).c_str(),
             stdout);
  if (gap_of(one) > 0)
    std::printf("gap %s: no plan takes less than %s, for %s\n", gap_text(one).c_str(),
                time_text(one.result.least.seconds).c_str(), one.result.least.why.c_str());
  if (!one.result.best[0].verified)
    std::puts("The plan is too large to be proved here. Do it with: sucl plan verify");
}

void print(const std::vector<one_size>& all) {
  if (all.size() == 1) return print(all[0]);
  std::vector<std::vector<std::string>> rows;
  for (const one_size& one : all) {
    rows.push_back(row(one.result.best[0], one.what));
    rows.back().insert(rows.back().begin(), bytes_text(one.bytes));
    rows.back().insert(rows.back().begin() + 2, gap_text(one));
  }
  std::fputs(table({"bytes", "predicted", "gap", "GB/s", "instructions", "proved", "recipe "}, rows)
                 .c_str(),
             stdout);
}

one_size search_one(const problem_options& o, const sim::machine& m, std::uint64_t bytes,
                    tune::search_options options, const progress& shown) {
  one_size one;
  one.bytes = bytes;
  one.what = make_problem(o, bytes);
  options.progress = [&](const std::string& at) { shown.at(bytes_text(bytes) + ", " + at); };
  const auto start = std::chrono::steady_clock::now();
  one.result = tune::search(one.what, m, options);
  one.took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return one;
}

tune::table as_table(const std::vector<one_size>& all, const std::string& machine) {
  tune::table t;
  t.author = "sucl plan search";
  t.measured = false;
  t.machine.name = machine;
  for (const one_size& one : all) {
    const tune::found& f = one.result.best[0];
    tune::table_row r;
    r.what = one.what.kind;
    r.memory = tune::memory_of(f.how);
    r.ranks = {static_cast<std::uint64_t>(one.what.ranks),
               static_cast<std::uint64_t>(one.what.ranks)};
    r.backend = "plan";
    r.how = f.how;
    r.seconds = f.seconds;
    r.at = one.bytes;
    r.verified = f.verified;
    t.rows.push_back(std::move(r));
  }
  t.rows = tune::cover_all_sizes(std::move(t.rows));
  return t;
}

}  // namespace

int plan_search(const words& arguments) {
  problem_options problem;
  std::string machine_name, sizes, json_file, toml_file, output;
  tune::search_options options;
  CLI::App app{"Finds the best plan of a collective on a machine.", "sucl plan search"};
  define_machine(app, machine_name);
  define(app, problem);
  app.add_option("--sizes", sizes, "Several sizes instead: 8:1Gi doubles, 8:1Gi:4 quadruples")
      ->type_name("LIST");
  app.add_option("--keep", options.keep, "How many plans to show (5)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000).description(""));
  app.add_option("--effort", options.budget,
                 "Work of the simulator in all (1600000, and 8000 for each rank)")
      ->type_name("N")
      ->check(CLI::Range(1.0, 1e12).description(""));
  app.add_option("--json", json_file, "Write the results as JSON; '-' is standard output")
      ->type_name("FILE");
  app.add_option("--toml", toml_file, "Write the best recipe of each size; '-' is standard output")
      ->type_name("FILE");
  app.add_option("--output", output,
                 "Write the best plan here, as text, or JSON if it ends in .json")
      ->type_name("FILE");
  app.footer(search_examples);
  if (!parse(app, arguments)) return exit_code::success;
  const sim::machine m = read_machine(machine_name);
  if (sizes.empty() == problem.bytes.empty())
    wrong_usage("give --bytes for one size or --sizes for several.");
  const auto list = read_option(sizes.empty() ? "--bytes" : "--sizes", [&] {
    return base::parse_byte_sequence(sizes.empty() ? problem.bytes : sizes);
  });
  if (!output.empty() && list.size() > 1) wrong_usage("--output is for one size, not for --sizes.");
  for (const std::uint64_t bytes : list) make_problem(problem, bytes);
  const progress shown("sucl plan search");
  std::vector<one_size> all;
  for (const std::uint64_t bytes : list)
    all.push_back(search_one(problem, m, bytes, options, shown));
  if (!json_file.empty()) {
    json sizes_found = json::array();
    for (const one_size& one : all) sizes_found.push_back(as_json(one));
    const json result{{"machine", m.name},
                      {"collective", problem.collective},
                      {"ranks", problem.ranks},
                      {"sizes", sizes_found}};
    write_file(json_file, result.dump(2) + "\n");
  }
  for (const one_size& one : all)
    if (!toml_file.empty() && one.result.best[0].made)
      wrong_usage("--toml is for recipes, and this plan is made for the links of " + m.name +
                  ". Write the plan itself with --output.");
  if (!toml_file.empty()) write_file(toml_file, tune::to_toml(as_table(all, m.name)));
  if (!output.empty()) {
    const plan::schedule s = tune::plan_of(all[0].what, all[0].result.best[0]);
    write_file(output, output.ends_with(".json") ? plan::to_json(s) : plan::to_text(s));
  }
  if (json_file != "-" && toml_file != "-" && output != "-") print(all);
  return exit_code::success;
}

}  // namespace sucl::tools
