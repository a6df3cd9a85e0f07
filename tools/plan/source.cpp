// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "source.hpp"

#include "command.hpp"

#include "base/error.hpp"
#include "base/system/file.hpp"
#include "base/text.hpp"
#include "plan/foreign/msccl_xml.hpp"
#include "plan/foreign/mscclpp_json.hpp"
#include "plan/serialization/text.hpp"
#include "tune/digit_search.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>

namespace sucl::tools {
namespace {

constexpr int max_ranks = 65536;

std::vector<kind> planned_kinds() {
  std::vector<kind> list;
  for (int k = SUCL_KIND_BROADCAST; k <= SUCL_KIND_EXSCAN; ++k)
    if (!plan::algorithms_for(static_cast<kind>(k)).empty()) list.push_back(static_cast<kind>(k));
  return list;
}

std::string read_standard_input() {
  std::string text;
  std::array<char, 65536> piece{};
  while (std::cin.read(piece.data(), piece.size()) || std::cin.gcount() > 0) {
    text.append(piece.data(), static_cast<std::size_t>(std::cin.gcount()));
    if (text.size() > base::max_file_bytes)
      base::fail(errc::invalid_argument,
                 "standard input has more than the " + base::print_bytes(base::max_file_bytes) +
                     " that are read",
                 "Give a plan of fewer ranks.");
  }
  return text;
}

// What becomes of an error of the library about something the user wrote.
template <class Make>
auto as_usage(Make&& make) {
  try {
    return make();
  } catch (const error& e) {
    wrong_usage(e.message() + ". " + e.hint());
  }
}

plan::schedule parse_plan(const std::string& file) {
  const std::string text = read_file(file);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string::npos && text[first] == '{';
  const bool xml = first != std::string::npos && text[first] == '<';
  try {
    if (xml) return plan::from_msccl_xml(text);
    if (json && plan::is_mscclpp_json(text)) return plan::from_mscclpp_json(text);
    return json ? plan::from_json(text) : plan::from_text(text);
  } catch (const error& e) {
    base::fail(e.code(), file + ": " + e.message(), e.hint());
  }
}

}  // namespace

void define(CLI::App& app, problem_options& o, bool bytes) {
  app.add_option("--collective", o.collective, "The collective (allreduce)")->type_name("NAME");
  app.add_option("--ranks", o.ranks, "Number of ranks")
      ->type_name("N")
      ->check(CLI::Range(1, max_ranks).description(""));
  if (bytes)
    app.add_option("--bytes", o.bytes,
                   "Bytes of a rank's message; of gathers, scatters, alltoall and reduce_scatter "
                   "of one block")
        ->type_name("SIZE");
  app.add_option("--element", o.element, "Bytes of an element (4)")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20).description(""));
  app.add_option("--root", o.root, "Root of rooted collectives (0)")
      ->type_name("RANK")
      ->check(CLI::Range(0, max_ranks).description(""));
  app.add_flag("--in-place", o.in_place, "The input lies in the output");
  app.add_flag("--ranked", o.ranked, "Combine in order of rank");
  app.add_flag("--fixed", o.fixed, "Fold in order of rank, as with determinism = \"strict\"");
}

void define(CLI::App& app, source_options& o) {
  app.add_option("FILE", o.file,
                 "A plan as text or JSON, MSCCL's XML or MSCCL++'s JSON; '-' is standard input")
      ->type_name("");
  define(app, o.problem);
  app.add_option("--recipe", o.recipe,
                 "Algorithm with parameters, as in 'exchange(radices=4,2;ports=2)'; "
                 "'sucl plan algorithms' lists them")
      ->type_name("RECIPE");
}

kind read_collective(const std::string& word) {
  words known;
  for (const kind k : planned_kinds()) known.emplace_back(name(k));
  check_word(word, known, "collective");
  for (const kind k : planned_kinds())
    if (word == name(k)) return k;
  return kind::allreduce;
}

plan::problem make_problem(const problem_options& o, std::uint64_t bytes) {
  plan::problem p;
  p.kind = read_collective(o.collective);
  if (o.ranks < 1) wrong_usage("--ranks is missing: say how many there are, as in --ranks 8.");
  p.ranks = o.ranks;
  p.element_bytes = o.element;
  p.root = rooted(p.kind) ? o.root : 0;
  p.in_place = o.in_place;
  p.order = o.fixed    ? plan::ordering::fixed
            : o.ranked ? plan::ordering::ranked
                       : plan::ordering::any;
  if (bytes % o.element != 0)
    wrong_usage(std::to_string(bytes) + " bytes are no whole number of elements of " +
                std::to_string(o.element) + " bytes. Choose another --element or size.");
  const auto ranks = static_cast<std::size_t>(p.ranks);
  std::size_t entries = 1;
  if (p.kind == kind::alltoallv) entries = ranks * ranks;
  if (p.kind == kind::reduce_scatter || p.kind == kind::allgatherv || p.kind == kind::gatherv ||
      p.kind == kind::scatterv)
    entries = ranks;
  constexpr std::size_t max_entries = std::size_t{1} << 26;
  if (entries > max_entries)
    wrong_usage("alltoallv of " + std::to_string(ranks) + " ranks has " + std::to_string(entries) +
                " counts, more than the " + std::to_string(max_entries) +
                " that there may be. Use alltoall or fewer ranks.");
  p.counts.assign(entries, bytes / o.element);
  as_usage([&] { plan::check(p); });
  return p;
}

plan::problem read_problem(const problem_options& o) {
  if (o.bytes.empty()) wrong_usage("--bytes is missing: say how many, as in --bytes 1Mi.");
  return make_problem(o, read_option("--bytes", [&] { return base::parse_bytes(o.bytes); }));
}

plan::recipe read_recipe(const std::string& text, const plan::problem& p) {
  if (text.empty())
    wrong_usage("--recipe is missing: say how, as in --recipe ring. See sucl plan algorithms.");
  const plan::recipe r = read_option("--recipe", [&] { return plan::recipe_from_text(text); });
  if (const std::string why = plan::refusal(p, r); !why.empty())
    wrong_usage("--recipe: " + why + (why.ends_with("?") || why.ends_with(".") ? "" : "."));
  return r;
}

plan::schedule read_plan(const source_options& o) {
  if (!o.file.empty()) {
    if (!o.recipe.empty() || o.problem.ranks > 0)
      wrong_usage("there is a file and a collective as well. Give one of them.");
    return parse_plan(o.file);
  }
  if (o.recipe.empty() && o.problem.ranks == 0)
    wrong_usage("no plan. Give a file, or --collective, --ranks, --bytes and --recipe.");
  const plan::problem p = read_problem(o.problem);
  const plan::recipe r = read_recipe(o.recipe, p);
  return as_usage([&] { return plan::build(p, r); });
}

std::optional<plan::symmetric_schedule> read_symmetric_plan(const source_options& o) {
  if (!o.file.empty() || o.recipe.empty() || o.problem.ranks < tune::min_ranks_alike) return {};
  const plan::problem p = read_problem(o.problem);
  const plan::recipe r = read_recipe(o.recipe, p);
  if (!plan::is_symmetric(r)) return {};
  return as_usage([&] { return plan::build_symmetric(p, r); });
}

void define_machine(CLI::App& app, std::string& name) {
  app.add_option("--machine", name,
                 "The machine: a name of 'sucl plan machines', or a TOML or JSON file")
      ->type_name("NAME");
}

void define_effort(CLI::App& app, source_options& o) {
  app.add_option("--effort", o.effort,
                 "Steps of the proof and of the simulation, and bytes of memory (4e9)")
      ->type_name("N")
      ->check(CLI::Range(1.0, 1e18).description(""));
}

plan::verdict prove(const plan::schedule& s, const source_options& o) {
  const auto most = static_cast<std::uint64_t>(o.effort);
  return plan::verify(s, {most, most});
}

sim::machine read_machine(const std::string& name) {
  if (name.empty())
    wrong_usage("--machine is missing. 'sucl plan machines' lists those that there are.");
  return read_option("--machine", [&] { return sim::load_machine(name); });
}

double largest_buffer(const plan::problem& p) {
  std::uint64_t most = 0;
  for (int r = 0; r < p.ranks; ++r)
    most = std::max({most, plan::send_bytes(p, r), plan::recv_bytes(p, r)});
  return static_cast<double>(most);
}

double throughput(const plan::problem& p, double seconds) {
  return seconds > 0 ? largest_buffer(p) / seconds : 0;
}

std::string hash_text(std::uint64_t hash) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash));
  return text.data();
}

std::string read_file(const std::string& path) {
  if (path == "-") return read_standard_input();
  base::file_content file = base::read_regular_file(path);
  if (!file.problem.empty())
    base::fail(errc::invalid_argument, "cannot read '" + path + "': " + file.problem,
               "Check the path; '-' is standard input.");
  return std::move(file.text);
}

void write_file(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    base::fail(errc::invalid_argument, "cannot write '" + path + "'",
               "Choose a file in a folder that exists and has room.");
}

}  // namespace sucl::tools
