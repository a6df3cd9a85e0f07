// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "base/system/file.hpp"
#include "sim/model/machine.hpp"
#include "sim/model/topology_json.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace sucl::sim {
namespace {

namespace fs = std::filesystem;

constexpr const char* this_name = "this";

// Descriptions lie in a folder beside the modules: seen from libsucl_core, or from a program that
// has this part inside.
fs::path machine_folder() {
  Dl_info found{};
  if (dladdr(reinterpret_cast<void*>(&shipped_machines), &found) == 0 || !found.dli_fname)
    return {};
  std::error_code ignored;
  // A program that was found on PATH is named without its folder.
  const bool program = std::strchr(found.dli_fname, '/') == nullptr;
  const fs::path binary = fs::canonical(program ? "/proc/self/exe" : found.dli_fname, ignored);
  const fs::path here = binary.parent_path();
  for (const fs::path& modules :
       {here, here / "sucl", here / SUCL_PROGRAM_TO_MODULES, here / ".." / "lib" / "sucl"})
    if (fs::is_directory(modules / "machines", ignored))
      return fs::weakly_canonical(modules / "machines", ignored);
  return {};
}

machine read_machine(const std::string& path) {
  const base::file_content file = base::read_regular_file(path);
  if (!file.problem.empty())
    base::fail(errc::configuration,
               "cannot read the machine description '" + path + "': " + file.problem,
               "Correct the path, or give the name of a machine that came with SuCL.");
  return fs::path(path).extension() == ".json" ? machine_from_json(file.text, path)
                                               : machine_from_toml(file.text, path);
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string this_machine_file() {
  const std::string cache = base::cache_folder();
  return cache.empty() ? cache : cache + "/machines/" + this_name + ".toml";
}

std::string write_this_machine(const machine& m) {
  const fs::path path = this_machine_file();
  std::error_code why;
  fs::create_directories(path.parent_path(), why);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << "# Measured on the machine that this file lies on.\n" << to_toml(m);
  file.close();
  if (!file)
    base::fail(errc::configuration, "cannot write '" + path.string() + "': " + std::strerror(errno),
               "Set XDG_CACHE_HOME to a folder that this user may write to.");
  return path.string();
}

std::vector<machine_summary> shipped_machines() {
  std::vector<machine_summary> result;
  const auto add = [&](const std::string& name, const std::string& file) {
    const machine m = read_machine(file);
    result.push_back({name, m.summary, file, rank_count(m)});
  };
  const fs::path folder = machine_folder();
  for (const std::string& name : names_in(folder)) add(name, (folder / (name + ".toml")).string());
  std::error_code ignored;
  if (fs::exists(this_machine_file(), ignored)) add(this_name, this_machine_file());
  return result;
}

machine load_machine(const std::string& path_or_name) {
  const fs::path ending = fs::path(path_or_name).extension();
  const bool path =
      path_or_name.find('/') != std::string::npos || ending == ".toml" || ending == ".json";
  if (path) return read_machine(path_or_name);
  std::error_code ignored;
  if (path_or_name == this_name) {
    if (!fs::exists(this_machine_file(), ignored))
      base::fail(
          errc::invalid_argument,
          "there is no description of this machine: '" + this_machine_file() + "' does not exist",
          "Write it with 'sucl plan machines --measure'.");
    return read_machine(this_machine_file());
  }
  const fs::path folder = machine_folder();
  std::vector<std::string> names = names_in(folder);
  if (std::find(names.begin(), names.end(), path_or_name) != names.end())
    return read_machine((folder / (path_or_name + ".toml")).string());
  names.emplace_back(this_name);
  base::fail(
      errc::invalid_argument, "there is no machine '" + path_or_name + "'",
      base::did_you_mean(path_or_name, names) + " A description of your own is given by its path.");
}

}  // namespace sucl::sim
