// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "source.hpp"
#include "terminal/format.hpp"
#include "terminal/progress.hpp"

#include "base/text.hpp"
#include "plan/serialization/text.hpp"
#include "plan/verify/verify.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>

namespace sucl::tools {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* build_examples =
    "The plan is proved before it is written.\n\n"
    "Examples:\n"
    "  sucl plan build --collective allreduce --ranks 8 --bytes 64Ki --recipe ring\n"
    "  sucl plan build --collective allreduce --ranks 6 --bytes 1Mi \\\n"
    "    --recipe 'exchange(radices=2,3;split=1)' --output plan.json";

constexpr const char* verify_examples =
    "Executes all ranks symbolically: every element of the result holds each contribution once,\n"
    "nothing is read before it is written, no race, no deadlock, in bounds.\n\n"
    "Examples:\n"
    "  sucl plan verify plan.json\n"
    "  sucl plan verify --collective alltoall --ranks 7 --bytes 1Ki --recipe bruck\n\n"
    "Exit code: 1 if the plan is wrong.";

json as_json(const plan::schedule& s, const plan::verdict& v, double seconds) {
  return {{"right", static_cast<bool>(v)},
          {"collective", sucl::name(s.what.kind)},
          {"ranks", s.what.ranks},
          {"algorithm", s.algorithm},
          {"hash", hash_text(plan::hash(s))},
          {"instructions", plan::instruction_count(s)},
          {"identical", v.identical},
          {"fault", v ? json() : json(plan::name(v.what))},
          {"rank", v.rank},
          {"channel", v.channel},
          {"instruction", v.instruction},
          {"space", plan::name(v.where)},
          {"offset", v.offset},
          {"bytes", v.bytes},
          {"message", v.message},
          {"steps", v.steps},
          {"seconds", seconds}};
}

std::string right_text(const plan::schedule& s, const plan::verdict& v) {
  const std::string bits = plan::what_is_identical(s, v);
  return std::string("right: ") + sucl::name(s.what.kind) + " of " + std::to_string(s.what.ranks) +
         " ranks by " + s.algorithm + ", " + std::to_string(plan::instruction_count(s)) +
         " instructions, hash " + hash_text(plan::hash(s)) + (bits.empty() ? "" : ", " + bits);
}

// A plan that is the same for every rank, proved for one.
int verify_symmetric(const plan::symmetric_schedule& s, const std::string& json_file) {
  const auto start = std::chrono::steady_clock::now();
  const plan::verdict v = plan::prove(s);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const std::uint64_t instructions = plan::instruction_count(s);
  if (!json_file.empty()) {
    const json result{{"right", static_cast<bool>(v)},
                      {"collective", sucl::name(s.what.kind)},
                      {"ranks", s.what.ranks},
                      {"algorithm", s.algorithm},
                      {"hash", hash_text(plan::hash(s))},
                      {"instructions", instructions},
                      {"identical", v.identical},
                      {"message", v.message},
                      {"steps", v.steps},
                      {"seconds", took.count()}};
    write_file(json_file, result.dump(2) + "\n");
  }
  const std::string right =
      std::string("right: ") + sucl::name(s.what.kind) + " of " + std::to_string(s.what.ranks) +
      " ranks by " + s.algorithm + ", " + std::to_string(instructions) +
      " instructions, the same for every rank and proved for one, " + time_text(took.count());
  if (json_file != "-") std::printf("%s\n", v ? right.c_str() : ("wrong: " + v.message).c_str());
  return v ? exit_code::success : exit_code::failure;
}

}  // namespace

int plan_build(const words& arguments) {
  source_options source;
  std::string output = "-", json_file;
  CLI::App app{"Makes the plan of a collective, proves it and writes it.", "sucl plan build"};
  define(app, source);
  define_effort(app, source);
  app.add_option("--output", output, "Write here: JSON if the name ends in .json (- as text)")
      ->type_name("FILE");
  app.add_option("--json", json_file, "Write JSON here instead; '-' is standard output")
      ->type_name("FILE");
  app.footer(build_examples);
  if (!parse(app, arguments)) return exit_code::success;
  const progress shown("sucl plan build");
  const plan::schedule s = read_plan(source);
  shown.at("proving");
  const plan::verdict v = prove(s, source);
  if (!v) {
    std::fprintf(stderr, "sucl: the plan is wrong: %s\n", v.message.c_str());
    return exit_code::failure;
  }
  shown.at("writing");
  if (!json_file.empty())
    write_file(json_file, plan::to_json(s));
  else
    write_file(output, output.ends_with(".json") ? plan::to_json(s) : plan::to_text(s));
  std::fprintf(stderr, "%s\n", right_text(s, v).c_str());
  return exit_code::success;
}

int plan_verify(const words& arguments) {
  source_options source;
  std::string json_file;
  CLI::App app{"Proves a plan right, or names the first fault.", "sucl plan verify"};
  define(app, source);
  define_effort(app, source);
  app.add_option("--json", json_file, "Write the verdict as JSON; '-' is standard output")
      ->type_name("FILE");
  app.footer(verify_examples);
  if (!parse(app, arguments)) return exit_code::success;
  if (const auto symmetric = read_symmetric_plan(source))
    return verify_symmetric(*symmetric, json_file);
  const progress shown("sucl plan verify");
  const plan::schedule s = read_plan(source);
  shown.at("proving " + std::to_string(plan::instruction_count(s)) + " instructions");
  const auto start = std::chrono::steady_clock::now();
  const plan::verdict v = prove(s, source);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (!json_file.empty()) write_file(json_file, as_json(s, v, took.count()).dump(2) + "\n");
  if (json_file != "-")
    std::printf("%s\n", v ? right_text(s, v).c_str() : ("wrong: " + v.message).c_str());
  return v ? exit_code::success : exit_code::failure;
}

int plan_algorithms(const words& arguments) {
  std::string collective;
  CLI::App app{"Lists the algorithms with the parameters that their recipes take.",
               "sucl plan algorithms"};
  app.add_option("COLLECTIVE", collective, "Only those for this collective")->type_name("");
  app.footer(
      "A recipe is a name and parameters: ring, or 'exchange(radices=4,2;ports=2)'. docs/design/\n"
      "plan-construction.md says what each parameter does.\n\n"
      "Examples:\n"
      "  sucl plan algorithms\n"
      "  sucl plan algorithms broadcast");
  if (!parse(app, arguments)) return exit_code::success;
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const plan::algorithm_info& a) {
    std::vector<std::string> parameters(a.parameters.begin(), a.parameters.end());
    rows.push_back({a.name, base::join(parameters, " "), a.summary});
  };
  if (collective.empty())
    for (const plan::algorithm_info& a : plan::algorithms()) add(a);
  else
    for (const plan::algorithm_info* a : plan::algorithms_for(read_collective(collective))) add(*a);
  std::fputs(table({"algorithm", "parameters ", "what it does "}, rows).c_str(), stdout);
  return exit_code::success;
}

}  // namespace sucl::tools
