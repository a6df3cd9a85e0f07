// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "environment.hpp"

#include "base/config/toml_reading.hpp"
#include "base/error.hpp"
#include "base/system/file.hpp"

#include <sucl/types.hpp>

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace sucl::tools {
namespace {

constexpr int known_format = 1;

std::string variable(const std::string& name) {
  const char* value = secure_getenv(name.c_str());
  return value ? value : "";
}

// Modules lie in a folder beside libsucl_core, which holds this function.
std::string module_folder() {
  Dl_info found{};
  const char* (*in_core)(kind) noexcept = &sucl::name;
  if (dladdr(reinterpret_cast<void*>(in_core), &found) == 0 || !found.dli_fname) return {};
  std::error_code ignored;
  const auto core = std::filesystem::canonical(found.dli_fname, ignored);
  return (core.parent_path() / "sucl").string();
}

template <class View>
std::string text(View node) {
  return node.value_or(std::string());
}

template <class View>
words list(View node) {
  words result;
  if (const toml::array* array = node.as_array())
    for (const auto& entry : *array) result.push_back(entry.value_or(std::string()));
  return result;
}

template <class View>
variable_changes changes(View table) {
  variable_changes result;
  if (const toml::table* set = table["set"].as_table())
    for (const auto& [name, value] : *set)
      result.set.emplace_back(name.str(), value.value_or(std::string()));
  if (const toml::table* prepend = table["prepend"].as_table())
    for (const auto& [name, value] : *prepend)
      result.prepend.emplace_back(name.str(), list(toml::node_view<const toml::node>(value)));
  return result;
}

mpi_flavour read_flavour(const std::string& name, toml::node_view<const toml::node> table,
                         const std::string& folder) {
  mpi_flavour f;
  f.name = name;
  f.family = text(table["family"]);
  f.version = text(table["version"]);
  f.module = (std::filesystem::path(folder) / text(table["module"])).string();
  f.launcher = text(table["launcher"]);
  f.arguments = list(table["arguments"]);
  f.survive_arguments = list(table["survive_arguments"]);
  f.variables = changes(table["environment"]);
  return f;
}

template <class Change>
void change_paths(variable_changes& changes, const Change& change) {
  for (auto& [name, value] : changes.set) change(value);
  for (auto& [name, folders] : changes.prepend)
    for (std::string& folder : folders) change(folder);
}

// Calls change(path) for every path of the file.
template <class Change>
void change_paths(environment& env, const Change& change) {
  change(env.python);
  change(env.sycl_root);
  change_paths(env.sycl, change);
  for (mpi_flavour& flavour : env.flavours) {
    change(flavour.launcher);
    change_paths(flavour.variables, change);
  }
}

bool is_below(const std::string& path, const std::string& folder) {
  return path.compare(0, folder.size() + 1, folder + "/") == 0;
}

// What was installed with the modules is found from their folder.
void find_from(environment& env, const std::string& folder) {
  const std::string origin = "$ORIGIN";
  change_paths(env, [&](std::string& path) {
    if (is_below(path, origin)) path.replace(0, origin.size(), folder);
  });
}

// What lay below the SYCL runtime's folder when SuCL was built lies below SUCL_SYCL_ROOT if that
// folder has been moved there.
void relocate(environment& env) {
  const std::string from = env.sycl_root, to = variable("SUCL_SYCL_ROOT");
  if (from.empty() || to.empty()) return;
  change_paths(env, [&](std::string& path) {
    if (!is_below(path, from)) return;
    std::error_code ignored;
    const std::string moved = to + path.substr(from.size());
    if (!std::filesystem::exists(path, ignored) && std::filesystem::exists(moved, ignored))
      path = moved;
  });
}

void read(environment& env, const toml::table& file) {
  const auto format = file["format"].value_or(0);
  if (format != known_format) {
    env.problem = env.file + " has format " + std::to_string(format) + ", but this program reads " +
                  std::to_string(known_format) + ": build or install SuCL again";
    return;
  }
  env.python = text(file["python"]["executable"]);
  env.sycl_provider = text(file["sycl"]["provider"]);
  env.sycl_root = text(file["sycl"]["root"]);
  env.sycl = changes(file["sycl"]["environment"]);
  env.default_flavour = text(file["mpi"]["default"]);
  if (const toml::table* mpi = file["mpi"].as_table())
    for (const auto& [name, value] : *mpi)
      if (value.is_table())
        env.flavours.push_back(read_flavour(
            std::string(name.str()), toml::node_view<const toml::node>(value), env.module_folder));
  find_from(env, env.module_folder);
  relocate(env);
  std::stable_partition(env.flavours.begin(), env.flavours.end(), [&](const mpi_flavour& flavour) {
    return flavour.name == env.default_flavour;
  });
}

bool lists(const std::string& path_list, const std::string& folder) {
  return (":" + path_list + ":").find(":" + folder + ":") != std::string::npos;
}

// Puts the folders that are not there yet in front; returns whether there were any.
bool prepend(const std::string& name, const words& folders) {
  std::string value = variable(name);
  bool changed = false;
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    if (lists(value, *folder)) continue;
    value = *folder + (value.empty() ? "" : ":") + value;
    changed = true;
  }
  if (changed) setenv(name.c_str(), value.c_str(), 1);
  return changed;
}

}  // namespace

environment load_environment() {
  environment env;
  env.module_folder = module_folder();
  env.file = variable("SUCL_ENVIRONMENT");
  if (env.file.empty()) env.file = env.module_folder + "/environment.toml";
  try {
    const base::file_content file = base::read_regular_file(env.file);
    if (file.problem.empty())
      read(env, base::parse_toml(file.text, {env.file, 0}));
    else
      env.problem = "cannot read " + env.file + ": " + file.problem +
                    ". The build writes it: build SuCL again, or set SUCL_ENVIRONMENT to its path";
  } catch (const error& e) {
    env.problem = e.message() + ". " + e.hint();
  }
  return env;
}

std::string environment::about_missing_mpi() const {
  constexpr std::string_view prefix = "libsucl_mpi_", suffix = ".so";
  words names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(module_folder, ignored)) {
    const std::string file = entry.path().filename().string();
    if (file.rfind(prefix, 0) == 0 && file.size() > prefix.size() + suffix.size())
      names.push_back(file.substr(prefix.size(), file.size() - prefix.size() - suffix.size()));
  }
  if (names.empty()) return "SuCL was built without an MPI library";
  std::sort(names.begin(), names.end());
  std::string text = "no launcher of an MPI library is known; there are modules for ";
  for (std::size_t i = 0; i < names.size(); ++i) text += (i > 0 ? ", " : "") + names[i];
  return text + ", which jobs use that the mpiexec of one of these starts";
}

const mpi_flavour& choose_flavour(const environment& env, const std::string& wanted) {
  if (!env.problem.empty()) throw exit_error(exit_code::failure, env.problem);
  if (env.flavours.empty())
    throw exit_error(exit_code::failure,
                     "This program cannot start ranks by MPI: " + env.about_missing_mpi() +
                         ". Use --launcher local, or build SuCL with an MPI: 'make setup', or "
                         "SUCL_MPI set to an mpicxx.");
  std::string name = wanted;
  const std::string preset = variable("SUCL_MPI_FLAVOUR");
  if (name.empty() && preset != "auto") name = preset;
  if (name.empty()) name = env.default_flavour;
  words known;
  for (const auto& flavour : env.flavours) {
    if (flavour.name == name) return flavour;
    known.push_back(flavour.name);
  }
  wrong_usage("SuCL was not built for an MPI '" + name + "'. " + base::did_you_mean(name, known));
}

bool apply(const variable_changes& changes) {
  for (const auto& [name, value] : changes.set) setenv(name.c_str(), value.c_str(), 0);
  for (const auto& [name, value] : changes.replace) setenv(name.c_str(), value.c_str(), 1);
  bool linker = false;
  for (const auto& [name, folders] : changes.prepend)
    if (prepend(name, folders) && name == "LD_LIBRARY_PATH") linker = true;
  return linker;
}

void prepare_sycl(const environment& env) {
  // The OpenCL driver of CPUs ends the process without a word there.
  if (std::error_code problem; std::filesystem::current_path(problem).empty() || problem)
    throw exit_error(exit_code::failure,
                     "the working directory cannot be found (" + problem.message() +
                         "): it may have been removed, and SYCL's drivers need one. Change to "
                         "another folder, as in: cd /tmp");
  // After the second start nothing is left to change, so there is no third one.
  if (!apply(env.sycl)) return;
  execv(own_path().c_str(), raw_arguments(process_arguments()).data());
  throw exit_error(exit_code::failure,
                   "cannot start " + own_path() +
                       " again with the library path of SYCL: " + std::strerror(errno));
}

std::string own_path() {
  std::error_code problem;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", problem);
  return problem ? "sucl" : path.string();
}

}  // namespace sucl::tools
