// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "plan/pictures/picture.hpp"
#include "plan/published/papers.hpp"
#include "source.hpp"
#include "terminal/format.hpp"
#include "terminal/progress.hpp"

#include "base/text.hpp"
#include "plan/verify/verify.hpp"
#include "sim/simulate.hpp"
#include "tune/search.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace sucl::tools {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* compare_examples =
    "--paper computes a table of the papers again: steps (what hierarchy, striping and pipelining\n"
    "add), rings (ring against tree), depth (of pipelines), scaling (to 256 nodes), leaders "
    "(single\n"
    "and multi-leader allreduce), published (search against published parameters).\n\n"
    "Examples:\n"
    "  sucl plan compare --machine frontier --ranks 64 --sizes 1Ki:1Gi:16 \\\n"
    "    --recipe ring --recipe exchange --recipe search --svg allreduce.svg\n"
    "  sucl plan compare --paper steps\n"
    "  sucl plan compare --paper depth --markdown --svg depth.svg";

struct compare_options {
  problem_options problem;
  std::string machine, sizes = "8:1Gi:16", json_file, svg_file, paper;
  std::vector<std::string> recipes;
  int nodes = 4;
  double effort = 0;
  bool markdown = false;
};

std::string as_markdown(const std::vector<std::string>& names,
                        const std::vector<std::vector<std::string>>& rows) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += " " + std::string(base::trim(cell)) + " |";
    return text + "\n";
  };
  std::string text = line(names) + "|";
  for (std::size_t i = 0; i < names.size(); ++i)
    text += i == 0 || names[i].back() == ' ' ? "---|" : "---:|";
  text += "\n";
  for (const auto& row : rows) text += line(row);
  return text;
}

void print(const compare_options& w, const paper_table& t) {
  const std::string body = w.markdown ? as_markdown(t.names, t.rows) : table(t.names, t.rows);
  std::printf("%s\n\n%s\n", t.caption.c_str(), body.c_str());
}

json as_json(const paper_table& t) {
  return {{"caption", t.caption}, {"columns", t.names}, {"rows", t.rows}};
}

void run_paper(const compare_options& w) {
  check_word(w.paper, paper_names(), "paper table");
  if (!w.svg_file.empty() && !paper_has_curves(w.paper))
    wrong_usage("--svg: the table '" + w.paper + "' has no curves to draw; 'depth' has.");
  const progress shown("sucl plan compare");
  paper_options o;
  for (const std::string& name :
       w.machine.empty() ? paper_machines(w.paper) : base::split(w.machine, ','))
    o.machines.push_back(read_machine(name));
  o.nodes = w.nodes;
  o.bytes = w.problem.bytes.empty()
                ? std::uint64_t{1} << 30
                : read_option("--bytes", [&] { return base::parse_bytes(w.problem.bytes); });
  o.effort = w.effort;
  o.shown = &shown;
  json list = json::array();
  std::vector<chart> pictures;
  for (const paper_table& t : compute_paper(w.paper, o)) {
    if (w.json_file != "-" && w.svg_file != "-") print(w, t);
    list.push_back(as_json(t));
    if (t.picture) pictures.push_back(*t.picture);
  }
  if (!w.svg_file.empty()) write_file(w.svg_file, draw(pictures));
  if (!w.json_file.empty()) write_file(w.json_file, list.dump(2) + "\n");
}

// Seconds of one cell; "search" takes what search finds.
double time_of(const std::string& recipe, const plan::problem& p, const sim::machine& m) {
  if (recipe == "search") return tune::search(p, m).best[0].seconds;
  const plan::schedule s = plan::build(p, read_recipe(recipe, p));
  plan::verify_or_fail(s);
  return sim::simulate(s, m).seconds;
}

void run_recipes(const compare_options& w) {
  if (w.recipes.empty())
    wrong_usage("nothing to compare. Give --recipe several times, or --paper. See --help.");
  const sim::machine m = read_machine(w.machine);
  const auto sizes = read_option("--sizes", [&] { return base::parse_byte_sequence(w.sizes); });
  const progress shown("sucl plan compare");
  paper_table t{m.name + ", " + w.problem.collective + ", " + std::to_string(w.problem.ranks) +
                    " ranks: predicted time",
                {"bytes"},
                {}};
  chart c{t.caption, "bytes", "seconds", true, {}};
  for (const std::string& r : w.recipes) {
    t.names.push_back(r);
    c.curves.push_back({r, {}, false});
  }
  for (const std::uint64_t bytes : sizes) {
    const plan::problem p = make_problem(w.problem, bytes);
    t.rows.push_back({bytes_text(bytes)});
    for (std::size_t i = 0; i < w.recipes.size(); ++i) {
      shown.at(bytes_text(bytes) + ", " + w.recipes[i]);
      const double seconds = time_of(w.recipes[i], p, m);
      t.rows.back().push_back(time_text(seconds));
      c.curves[i].points.emplace_back(static_cast<double>(bytes), seconds);
    }
  }
  if (!w.svg_file.empty()) write_file(w.svg_file, draw({c}));
  if (!w.json_file.empty()) write_file(w.json_file, as_json(t).dump(2) + "\n");
  if (w.json_file != "-" && w.svg_file != "-") print(w, t);
}

}  // namespace

int plan_compare(const words& arguments) {
  compare_options w;
  CLI::App app{"Compares recipes over message sizes, or computes the papers' tables again.",
               "sucl plan compare"};
  define_machine(app, w.machine);
  define(app, w.problem);
  app.add_option("--sizes", w.sizes, "Sizes: 8:1Gi doubles, 8:1Gi:4 quadruples (8:1Gi:16)")
      ->type_name("LIST");
  app.add_option("--recipe", w.recipes, "What to compare; 'search' is what search finds")
      ->type_name("RECIPE")
      ->allow_extra_args(false);
  app.add_option("--paper", w.paper, "Compute this table; --machine may then be a list")
      ->type_name("NAME");
  app.add_option("--nodes", w.nodes, "Nodes of a paper's table (4)")
      ->type_name("N")
      ->check(CLI::Range(2, 4096).description(""));
  app.add_option("--effort", w.effort,
                 "Work of each search of a paper's table, as in sucl plan search")
      ->type_name("N")
      ->check(CLI::Range(1.0, 1e12).description(""));
  app.add_flag("--markdown", w.markdown, "Write Markdown tables");
  app.add_option("--svg", w.svg_file, "Draw the times over the size, or a paper's curves (SVG)")
      ->type_name("FILE");
  app.add_option("--json", w.json_file, "Write the tables as JSON; '-' is standard output")
      ->type_name("FILE");
  app.footer(compare_examples);
  if (!parse(app, arguments)) return exit_code::success;
  if (w.paper.empty())
    run_recipes(w);
  else
    run_paper(w);
  return exit_code::success;
}

}  // namespace sucl::tools
