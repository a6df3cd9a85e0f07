// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "command.hpp"
#include "inspect/devices.hpp"
#include "inspect/inspection.hpp"
#include "launcher/child.hpp"
#include "launcher/environment.hpp"
#include "topology/topology.hpp"

#include "base/config/config.hpp"
#include "base/config/determinism.hpp"
#include "base/text.hpp"
#include "core/control/control_plane.hpp"
#include "core/control/registry.hpp"
#include "tune/table/table.hpp"

#include <sucl/version.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>
#include <vector>

namespace sucl::tools {
namespace {

using json = nlohmann::ordered_json;

constexpr std::chrono::seconds probe_limit{30};

constexpr const char* info_examples =
    "A module that cannot be loaded, or a device that is not found, is shown with the reason.\n\n"
    "Examples:\n"
    "  sucl info\n"
    "  sucl info --json | python3 -m json.tool\n"
    "  sucl run -n 3 -- sucl info --topology --measure --svg topology.svg\n"
    "  SUCL_TIMEOUT=30 sucl info          shows where each value of the configuration comes "
    "from\n\n"
    "Exit code: 1 if the configuration or the tuning table is wrong, else 0.";

json as_problem(const std::string& message, const std::string& hint = "") {
  return {{"message", message}, {"hint", hint}};
}

json as_json(const variable_changes& changes) {
  json set = json::object();
  json prepend = json::object();
  for (const auto& [name, value] : changes.set) set[name] = value;
  for (const auto& [name, folders] : changes.prepend) prepend[name] = folders;
  return {{"set", set}, {"prepend", prepend}};
}

json describe_mpi(const environment& env, const mpi_flavour& flavour) {
  json result{{"name", flavour.name},
              {"family", flavour.family},
              {"version", flavour.version},
              {"default", flavour.name == env.default_flavour},
              {"launcher", flavour.launcher},
              {"launcher_found", access(flavour.launcher.c_str(), X_OK) == 0},
              {"module", flavour.module}};
  const json answer = probe_module({"mpi", flavour.module}, flavour.variables);
  result["loads"] = answer.at("found");
  result["library"] = answer.value("library", "");
  result["problem"] = answer.value("problem", json());
  result["supports"] = answer.value("supports", json());
  result["environment"] = as_json(flavour.variables);
  return result;
}

json describe_mpis(const environment& env) {
  json result = json::array();
  for (const auto& flavour : env.flavours) result.push_back(describe_mpi(env, flavour));
  return result;
}

json describe_backend(const base::backend_entry& backend, const json& mpis,
                      const environment& env) {
  json result{{"name", backend.name},
              {"enabled", backend.enabled},
              {"platforms", backend.platforms},
              {"path", backend.path}};
  json answer;
  if (backend.role == base::backend_role::reference && backend.path.empty()) {
    // It is the module of whichever MPI a job uses; the default one speaks for it here.
    const auto used = std::find_if(mpis.begin(), mpis.end(),
                                   [](const json& mpi) { return mpi["default"].get<bool>(); });
    if (used != mpis.end()) {
      result["path"] = (*used)["module"];
      answer = {{"found", (*used)["loads"]},
                {"description", (*used)["library"]},
                {"problem", (*used)["problem"]},
                {"supports", (*used)["supports"]}};
    } else {
      answer = {{"found", false}, {"problem", as_problem(env.about_missing_mpi())}};
    }
  } else {
    answer = probe_backend(backend);
    if (answer.contains("path")) result["path"] = answer["path"];
  }
  result["found"] = answer["found"];
  result["description"] = answer.value("description", "");
  result["problem"] = answer.value("problem", json());
  result["supports"] = answer.value("supports", json());
  return result;
}

// What follows from the level of determinism.
std::string describe_determinism(const base::config& settings) {
  const base::determinism level = base::determinism_named(settings.determinism);
  const std::string name = base::name(level);
  if (level == base::determinism::strict)
    return name +
           ": sums and products of floats are folded in order of rank, whichever backend executes "
           "them";
  if (level == base::determinism::run)
    return name + ": all ranks, and every run, get the same bits; nothing timed decides over them";
  return name + ": all ranks get the same bits of a reduction";
}

json describe_settings(const base::config& settings) {
  json values = json::array();
  for (const auto& row : settings.rows)
    values.push_back({{"key", row.key},
                      {"value", row.value},
                      {"origin", row.origin},
                      {"environment", row.environment},
                      {"shared", row.shared},
                      {"help", row.help}});
  return {{"file", settings.file},
          {"values", values},
          {"warnings", settings.warnings},
          {"determinism", describe_determinism(settings)},
          {"problem", json()}};
}

// The tuning table, if one is set.
json describe_tuning(const base::config& settings) {
  if (settings.tuning.table.empty()) return nullptr;
  json result{{"file", settings.tuning.table}, {"problem", json()}, {"warning", ""}};
  try {
    const tune::table t = tune::load_table(settings.tuning.table, "tuning.table");
    result["author"] = t.author;
    result["times"] = t.measured ? "measured" : "predicted";
    result["machine"] = t.machine.name;
    result["mpi"] = t.machine.mpi;
    result["rows"] = t.rows.size();
    result["warning"] = tune::foreign(t, tune::this_machine());
  } catch (const error& e) {
    result["problem"] = as_problem(e.message(), e.hint());
  }
  return result;
}

json collect(const std::string& config_file) {
  const environment env = load_environment();
  prepare_sycl(env);
  base::config settings;
  json configuration;
  try {
    settings = base::load_config(config_file, base::sucl_variables());
    configuration = describe_settings(settings);
  } catch (const error& e) {
    configuration = {{"file", config_file},
                     {"values", json::array()},
                     {"warnings", json::array()},
                     {"problem", as_problem(e.message(), e.hint())}};
    settings = base::load_config("/dev/null", {});
  }
  json result{
      {"sucl", {{"version", SUCL_VERSION_STRING}, {"modules", env.module_folder}}},
      {"environment", {{"file", env.file}, {"problem", env.problem}, {"python", env.python}}}};
  // The probes come first: they fork, which is best done before SYCL starts its threads.
  const json mpis = describe_mpis(env);
  json backends = json::array();
  for (const auto& backend : settings.backends)
    backends.push_back(describe_backend(backend, mpis, env));
  json sycl = describe_devices(settings);
  sycl["provider"] = env.sycl_provider;
  sycl["root"] = env.sycl_root;
  sycl["environment"] = as_json(env.sycl);
  result["sycl"] = sycl;
  const core::flavour job = core::detect_flavour();
  result["job"] = {{"mpi", job.name}, {"why", job.why}};
  result["mpi"] = mpis;
  const std::string own = core::find_module("libsucl_tcp.so", core::module_directories());
  result["without_mpi"] = {{"module", own}, {"found", access(own.c_str(), R_OK) == 0}};
  result["backends"] = backends;
  result["configuration"] = configuration;
  result["tuning"] = describe_tuning(settings);
  return result;
}

std::string joined(const json& list) {
  std::string result;
  for (const json& entry : list) result += (result.empty() ? "" : " ") + text(entry);
  return result;
}

void print_problem(const json& problem) {
  if (problem.is_null()) return;
  std::printf("      %s\n", text(problem["message"]).c_str());
  if (!text(problem["hint"]).empty()) std::printf("      %s\n", text(problem["hint"]).c_str());
}

// The variables that `sucl run` sets, for those who start programs by other means.
void print_environment(const json& changes, const char* indent) {
  for (const auto& [name, value] : changes["set"].items())
    std::printf("%sneeds %s=%s\n", indent, name.c_str(), text(value).c_str());
  for (const auto& [name, folders] : changes["prepend"].items())
    std::printf("%sneeds in %s: %s\n", indent, name.c_str(), joined(folders).c_str());
}

void print_devices(const json& sycl) {
  std::printf("\nSYCL: %s %s (%s, %s)\n", text(sycl["implementation"]).c_str(),
              text(sycl["version"]).c_str(), text(sycl["provider"]).c_str(),
              text(sycl["root"]).c_str());
  if (!text(sycl["problem"]).empty()) std::printf("  %s\n", text(sycl["problem"]).c_str());
  print_environment(sycl["environment"], "  ");
  for (const json& platform : sycl["platforms"]) {
    std::printf("  platform %s: %s, backend %s, %s\n",
                text(platform["canonical"]).empty() ? "(no canonical name)"
                                                    : text(platform["canonical"]).c_str(),
                text(platform["name"]).c_str(), text(platform["sycl_backend"]).c_str(),
                text(platform["version"]).c_str());
    for (const json& device : platform["devices"])
      std::printf("    %s: %s, %d compute units, %.1f GiB, driver %s\n      %s\n",
                  text(device["type"]).c_str(), text(device["name"]).c_str(),
                  device["compute_units"].get<int>(),
                  device["memory_bytes"].get<double>() / (1 << 30), text(device["driver"]).c_str(),
                  joined(device["aspects"]).c_str());
  }
}

void print_mpis(const json& info) {
  std::puts("\nMPI:");
  if (info["mpi"].empty()) std::puts("  none");
  for (const json& mpi : info["mpi"]) {
    const bool loads = mpi["loads"].get<bool>();
    std::printf("  %-8s %s%s\n      module %s: %s\n      launcher %s%s\n",
                text(mpi["name"]).c_str(),
                loads && !text(mpi["library"]).empty()
                    ? text(mpi["library"]).c_str()
                    : (text(mpi["family"]) + " " + text(mpi["version"])).c_str(),
                mpi["default"].get<bool>() ? " (default)" : "", text(mpi["module"]).c_str(),
                loads ? "loads" : "does not load", text(mpi["launcher"]).c_str(),
                mpi["launcher_found"].get<bool>() ? "" : " is missing: run 'make setup'");
    print_environment(mpi["environment"], "      ");
    print_problem(mpi["problem"]);
  }
  const json& own = info["without_mpi"];
  std::printf(
      "  without  SuCL over TCP: sucl run --launcher local, torchrun, srun\n      module %s%s\n",
      text(own["module"]).c_str(), own["found"].get<bool>() ? "" : " is missing: run 'make build'");
  if (!text(info["job"]["mpi"]).empty())
    std::printf("  this process belongs to a job of %s: %s\n", text(info["job"]["mpi"]).c_str(),
                text(info["job"]["why"]).c_str());
}

// Operators with the same types together, in order of appearance: pairs of types and operators.
std::vector<std::pair<std::string, std::string>> by_types(const json& reductions) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const auto& [op, list] : reductions.items()) {
    const std::string types = joined(list);
    const auto same = std::find_if(lines.begin(), lines.end(),
                                   [&](const auto& line) { return line.first == types; });
    if (same == lines.end())
      lines.emplace_back(types, op);
    else
      same->second += " " + op;
  }
  return lines;
}

void print_backends(const json& backends) {
  std::puts("\nBackends:");
  for (const json& backend : backends) {
    std::printf("  %-8s %s%s\n      module %s\n", text(backend["name"]).c_str(),
                backend["found"].get<bool>() ? text(backend["description"]).c_str() : "not found",
                backend["enabled"].get<bool>() ? "" : " (not enabled)",
                text(backend["path"]).empty() ? "-" : text(backend["path"]).c_str());
    print_problem(backend["problem"]);
    const json& supports = backend["supports"];
    if (supports.is_null()) continue;
    std::printf("      platforms: %s\n      executes: %s\n      memory: %s\n",
                joined(backend["platforms"]).c_str(), joined(supports["kinds"]).c_str(),
                joined(supports["memory"]).c_str());
    for (const auto& [types, ops] : by_types(supports["reductions"]))
      std::printf("      %s: %s\n", ops.c_str(), types.c_str());
  }
}

void print_settings(const json& configuration) {
  const std::string file = text(configuration["file"]);
  std::printf("\nConfiguration: %s\n", file.empty() ? "no file" : file.c_str());
  print_problem(configuration["problem"]);
  const std::array<const char*, 4> columns{"key", "value", "origin", "environment"};
  std::array<std::size_t, 4> widths{};
  const auto cell = [](const json& row, const char* column) {
    return text(row[column]).empty() ? std::string("-") : text(row[column]);
  };
  constexpr std::size_t widest = 24;  // a longer value pushes its own line only
  for (const json& row : configuration["values"])
    for (std::size_t i = 0; i < columns.size(); ++i)
      widths[i] = std::max(widths[i], std::min(cell(row, columns[i]).size(), widest));
  for (const json& row : configuration["values"]) {
    std::string line;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string word = cell(row, columns[i]);
      line += "  " + word + std::string(widths[i] - std::min(widths[i], word.size()), ' ');
    }
    std::puts(line.substr(0, line.find_last_not_of(' ') + 1).c_str());
  }
  for (const json& warning : configuration["warnings"])
    std::printf("  warning: %s\n", text(warning).c_str());
  if (configuration.contains("determinism"))
    std::printf("  determinism: %s\n", text(configuration["determinism"]).c_str());
}

void print_tuning(const json& tuning) {
  if (tuning.is_null()) return;
  std::printf("\nTuning table: %s\n", text(tuning["file"]).c_str());
  print_problem(tuning["problem"]);
  if (!tuning["problem"].is_null()) return;
  std::printf("  %d rows, %s on %s by %s%s%s\n", tuning["rows"].get<int>(),
              text(tuning["times"]).c_str(), text(tuning["machine"]).c_str(),
              text(tuning["author"]).c_str(), text(tuning["mpi"]).empty() ? "" : " with ",
              text(tuning["mpi"]).c_str());
  if (!text(tuning["warning"]).empty())
    std::printf("  warning: %s\n", text(tuning["warning"]).c_str());
}

void print(const json& info) {
  std::printf("SuCL %s, modules in %s\n", text(info["sucl"]["version"]).c_str(),
              text(info["sucl"]["modules"]).c_str());
  const json& env = info["environment"];
  if (text(env["problem"]).empty())
    std::printf("Environment from %s\n", text(env["file"]).c_str());
  else
    std::printf("No environment: %s\n", text(env["problem"]).c_str());
  print_devices(info["sycl"]);
  print_mpis(info);
  print_backends(info["backends"]);
  print_settings(info["configuration"]);
  print_tuning(info["tuning"]);
}

}  // namespace

json probe_module(const words& arguments, const variable_changes& variables) {
  words command{own_path(), "probe"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const child_result child = run_child(command, variables, probe_limit);
  if (child.timed_out)
    return {{"found", false},
            {"problem",
             as_problem("it did not answer within " + std::to_string(probe_limit.count()) + " s")}};
  json answer = json::parse(child.output, nullptr, false);
  if (child.code == 0 && answer.is_object()) return answer;
  const std::string words = child.errors.substr(0, child.errors.find('\n'));
  return {
      {"found", false},
      {"problem", as_problem("loading it ended the process with code " +
                             std::to_string(child.code) + (words.empty() ? "" : ": " + words))}};
}

json probe_backend(const base::backend_entry& backend) {
  words arguments{backend.name, backend.path};
  for (const auto& [key, value] : backend.settings) arguments.push_back(key + "=" + value);
  return probe_module(arguments, {});
}

int info_command(const words& arguments) {
  bool topology = false;
  topology_options wanted;
  std::string config_file;
  CLI::App app{"Shows what SuCL finds here: SYCL devices, MPI libraries, backends, configuration.",
               "sucl info"};
  app.add_flag("--json", wanted.as_json, "Write JSON");
  app.add_option("--config", config_file, "Configuration file to read")->type_name("FILE");
  app.add_flag("--topology", topology,
               "Show the ranks of the job that it is run in, or one for each device, their islands "
               "and nodes, and how they reach each other");
  app.add_flag("--measure", wanted.measure,
               "With --topology: time messages between the ranks, one pair after the other");
  app.add_option("--svg", wanted.svg, "With --topology: draw it")->type_name("FILE");
  app.add_option("--device", wanted.device,
                 "With --topology: device of each rank: cpu, gpu, a list, or all, a rank for each")
      ->type_name("KINDS");
  app.footer(info_examples);
  if (!parse(app, arguments)) return exit_code::success;
  if (wanted.device != "all")
    for (const std::string& kind : base::split(wanted.device, ','))
      check_word(kind, {"cpu", "gpu"}, "device");
  if (topology) {
    if (!config_file.empty()) wrong_usage("--config: set SUCL_CONFIG for the ranks of --topology.");
    return show_topology(wanted);
  }
  if (wanted.measure || !wanted.svg.empty() || !wanted.device.empty())
    wrong_usage("--measure, --svg and --device go with --topology.");
  const json info = collect(config_file);
  if (wanted.as_json)
    std::puts(info.dump(2, ' ', false, json::error_handler_t::replace).c_str());
  else
    print(info);
  const bool tuned = info["tuning"].is_null() || info["tuning"]["problem"].is_null();
  return tuned && info["configuration"]["problem"].is_null() ? exit_code::success
                                                             : exit_code::failure;
}

}  // namespace sucl::tools
