// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "common/command_line.hpp"

#include <charconv>

namespace apps {
namespace {

const std::map<std::string, variant> variants = {
    {"sucl", variant::sucl}, {"host-accessor", variant::host_accessor}, {"usm", variant::usm}};
const std::map<std::string, form> forms = {
    {"auto", form::automatic}, {"event", form::event}, {"blocking", form::blocking}};

// "256x128x64".
extents parse_extents(const std::string& option, const std::string& text) {
  extents result{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t d = 0; d < 3; ++d) {
    const auto [rest, problem] = std::from_chars(at, end, result[d]);
    const bool last = d == 2;
    if (problem != std::errc{} || result[d] < 1 || result[d] > 1 << 20 ||
        (last ? rest != end : rest == end || *rest != 'x'))
      throw usage_error(option + ": '" + text +
                        "' is not a size. Write it as 64x32x16, each from 1 "
                        "to 1048576");
    at = rest + 1;
  }
  return result;
}

}  // namespace

const char* name(variant v) {
  for (const auto& [word, value] : variants)
    if (value == v) return word.c_str();
  return "unknown";
}

void add_options(CLI::App& app, options& o) {
  add_choice(app, "--variant", o.kind, variants,
             "sucl, host-accessor (MPI through host_accessor) or usm (MPI on USM) (sucl)");
  add_choice(app, "--form", o.calls, forms,
             "SuCL's calls: event, blocking, or auto: blocking on CPU devices (auto)");
  app.add_option("--iterations", o.iterations, "Iterations, at most those needed (100)")
      ->type_name("N");
  app.add_option("--breakdown", o.breakdown,
                 "Iterations after that, in which each phase is timed by itself (5)")
      ->type_name("N");
  add_choice(app, "--device", o.device, {{"cpu", "cpu"}, {"gpu", "gpu"}},
             "cpu or gpu (what SYCL prefers)", "KIND");
  app.add_option("--json", o.json, "Write the result to this file")->type_name("FILE");
  app.add_option("--plot", o.plot, "Write the final state to this file")->type_name("FILE");
  app.add_flag("--quiet", o.quiet, "No progress");
}

bool parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    app.exit(help);
    return false;
  } catch (const CLI::ParseError& e) {
    throw usage_error(e.what());
  }
  return true;
}

std::string print(const extents& e) {
  return std::to_string(e[0]) + "x" + std::to_string(e[1]) + "x" + std::to_string(e[2]);
}

void add_extents(CLI::App& app, const std::string& option, extents& value,
                 const std::string& help) {
  app.add_option_function<std::string>(
         option, [&value, option](const std::string& text) { value = parse_extents(option, text); },
         help + " (" + print(value) + ")")
      ->type_name("NxNxN");
}

}  // namespace apps
