// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "common/program/command_line.hpp"

#include <CLI/CLI.hpp>

#include <charconv>
#include <sstream>

namespace apps {
namespace {

const std::map<std::string, variant> variants = {
    {"sucl", variant::sucl}, {"host-accessor", variant::host_accessor}, {"usm", variant::usm}};
const std::map<std::string, form> forms = {
    {"auto", form::automatic}, {"event", form::event}, {"blocking", form::blocking}};

// "gpu,cpu".
std::vector<std::string> read_devices(const std::string& text) {
  std::vector<std::string> kinds;
  std::istringstream list(text + ',');
  for (std::string kind; std::getline(list, kind, ',');) {
    if (kind != "cpu" && kind != "gpu")
      throw usage_error("--device: there is no '" + kind + "'. Use one of cpu, gpu, or a list");
    kinds.push_back(kind);
  }
  return kinds;
}

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

command_line::command_line(const std::string& name, const std::string& summary)
    : m_app(std::make_unique<CLI::App>(summary, name)) {
  m_app->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

command_line::~command_line() = default;

template <class Value>
void command_line::add(const std::string& option, Value& value, const std::string& help,
                       const std::string& type) {
  m_app->add_option(option, value, help)->type_name(type);
}
template void command_line::add(const std::string&, int&, const std::string&, const std::string&);
template void command_line::add(const std::string&, std::int64_t&, const std::string&,
                                const std::string&);
template void command_line::add(const std::string&, double&, const std::string&,
                                const std::string&);
template void command_line::add(const std::string&, std::string&, const std::string&,
                                const std::string&);

void command_line::add_flag(const std::string& option, bool& value, const std::string& help) {
  m_app->add_flag(option, value, help);
}

void command_line::add_foreign(const std::string& option, const std::string& help,
                               const std::string& type) {
  m_app->add_option(option, help)->type_name(type);
}

void command_line::add_read(const std::string& option,
                            const std::function<void(const std::string&)>& read,
                            const std::string& help, const std::string& type) {
  m_app->add_option_function<std::string>(option, read, help)->type_name(type);
}

void command_line::add_extents(const std::string& option, extents& value, const std::string& help) {
  add_read(
      option, [&value, option](const std::string& text) { value = parse_extents(option, text); },
      help + " (" + print(value) + ")", "NxNxN");
}

void command_line::exclude(const std::string& option, const std::string& other) {
  m_app->get_option(option)->excludes(m_app->get_option(other));
}

bool command_line::parse(int argc, char** argv) {
  try {
    m_app->parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    m_app->exit(help);
    return false;
  } catch (const CLI::ParseError& e) {
    throw usage_error(e.what());
  }
  return true;
}

void add_options(command_line& line, options& o) {
  line.add_choice("--variant", o.kind, variants,
                  "sucl, host-accessor (MPI through host_accessor) or usm (MPI on USM) (sucl)");
  line.add_choice("--form", o.calls, forms,
                  "SuCL's calls: event, blocking, or auto: blocking on CPU devices (auto)");
  line.add("--iterations", o.iterations, "Iterations, at most those needed (100)", "N");
  line.add("--breakdown", o.breakdown,
           "Iterations after that, in which each phase is timed by itself (5)", "N");
  line.add_read(
      "--device", [&o](const std::string& text) { o.devices = read_devices(text); },
      "cpu or gpu, or a list, as gpu,cpu: of each rank, from its start again (what SYCL prefers)",
      "KINDS");
  line.add("--json", o.json, "Write the result to this file", "FILE");
  line.add("--plot", o.plot, "Write the final state to this file", "FILE");
  line.add_flag("--quiet", o.quiet, "No progress");
}

void add_record_option(command_line& line, options& o) {
  line.add("--record", o.recorded,
           "Record N iterations, and replay them together; by events (0: nothing is recorded)",
           "N");
}

void validate_record_option(const options& o) {
  constexpr int most = 10000;
  if (o.recorded < 0 || o.recorded > most)
    throw usage_error("--record: use a number from 0 to " + std::to_string(most));
  if (o.recorded == 0) return;
  if (o.kind != variant::sucl)
    throw usage_error("--record: calls of MPI cannot be recorded. Use --variant sucl");
  if (o.calls == form::blocking)
    throw usage_error("--record: blocking calls cannot be recorded. Use --form event");
}

std::string print(const extents& e) {
  return std::to_string(e[0]) + "x" + std::to_string(e[1]) + "x" + std::to_string(e[2]);
}

}  // namespace apps
