// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/config/draft.hpp"
#include "base/error.hpp"
#include "base/system/file.hpp"
#include "base/system/secure.hpp"

#include <filesystem>

namespace sucl::base {
namespace {

std::string read_file(const std::string& path, const std::string& named_by) {
  file_content file = read_regular_file(path);
  if (!file.problem.empty())
    fail(errc::configuration,
         "cannot read the configuration file '" + path + "' given by " + named_by + ": " +
             file.problem,
         "Correct the path, or leave it out to use sucl.toml in the working directory.");
  return std::move(file.text);
}

bool names_a_library(std::string_view key) {
  constexpr std::string_view backends = "backends.";
  if (key.substr(0, backends.size()) != backends)
    return key == "mpi.module" || key == "fabric.library" || key == "pmix.library";
  key.remove_prefix(backends.size());
  const auto dot = key.find('.');
  if (dot == std::string_view::npos) return false;
  key.remove_prefix(dot + 1);
  return key == "path" || key == "library";
}

// A user who can write to a working directory must not be able to run code in processes that other
// users start there.
void refuse_modules(const draft& d) {
  for (const auto& [key, origin] : d.origins) {
    if (origin == "default" || !names_a_library(key)) continue;
    refuse(origin,
           key + " names a library to load, which a file that is found in the working directory " +
               "may not do",
           "Name the file yourself if it is yours: SUCL_CONFIG=./sucl.toml, --sucl-config "
           "./sucl.toml, or sucl run --config sucl.toml.");
  }
}

void load_chosen_file(draft& d, const std::string& path, const variables& environment) {
  std::string chosen = path;
  std::string named_by = "--sucl-config";
  for (const auto& [name, value] : environment)
    if (chosen.empty() && name == "SUCL_CONFIG" && !value.empty()) {
      chosen = value;
      named_by = "SUCL_CONFIG";
    }
  std::error_code ignored;
  const bool found =
      chosen.empty() && !raised_privileges() && std::filesystem::exists("sucl.toml", ignored);
  if (found) {
    chosen = "sucl.toml";
    named_by = "the working directory";
  }
  if (chosen.empty()) return;
  d.c.file = chosen;
  load_toml_file(d, read_file(chosen, named_by), "file " + chosen);
  if (found) refuse_modules(d);
}

void set_defaults(draft& d) {
  d.c.platforms = built_in_platforms();
  d.c.backends = known_backends();
  for (const auto& row : config_keys())
    if (!row.group() && !row.in_entry())
      apply(d, row, {&d.c}, row.name, {{row.fallback}, {"default"}, "default"});
}

}  // namespace

void check_name(const std::string& name, const std::string& origin) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz0123456789_-";
  if (!name.empty() && name.find_first_not_of(allowed) == std::string::npos) return;
  refuse(origin, "'" + name + "' cannot be a name", "Use small letters, digits, '_' and '-' only.");
}

void apply(draft& d, const key_row& row, const key_target& target, const std::string& key,
           const found_value& value) {
  try {
    row.set(target, value.texts);
  } catch (const error& e) {
    refuse(value.origin, key + ": " + e.message(), e.hint());
  }
  d.origins[key] = value.origin;
  if (row.known == nullptr) return;
  for (std::size_t i = 0; i < value.texts.size(); ++i)
    d.pending.push_back({&row, key, value.texts[i], value.origins[i]});
}

backend_entry& put_backend(draft& d, const std::string& name, std::size_t at) {
  const bool known = find_entry(d.c.backends, name) != nullptr;
  backend_entry& backend = entry_at(d.c.backends, name, at);
  if (known) return backend;
  for (const auto& row : config_keys())
    if (std::string_view(row.name).substr(0, 11) == "backends.*.")
      row.set({&d.c, nullptr, &backend, nullptr}, split(row.fallback, ','));
  return backend;
}

void set_backend_setting(draft& d, backend_entry& backend, const std::string& key,
                         const found_value& value) {
  const auto same_key = [&](const auto& s) { return s.first == key; };
  auto& settings = backend.settings;
  settings.erase(std::remove_if(settings.begin(), settings.end(), same_key), settings.end());
  settings.emplace_back(key, join(value.texts, ","));
  const std::string full = "backends." + backend.name + "." + key;
  d.origins[full] = value.origin;
  const std::string near = key.size() < 5 ? "" : nearest(key, keys_below("backends.*."));
  if (!near.empty())
    d.c.warnings.push_back(value.origin + ": " + full + " is handed to the backend as it is; if '" +
                           near + "' was meant, correct it");
}

std::string take_config_argument(int* argc, char** argv) {
  constexpr std::string_view option = "--sucl-config";
  std::string path;
  if (argc == nullptr || argv == nullptr) return path;
  int kept = 0;
  bool ours = true;  // until "--", after which arguments belong to another program
  for (int i = 0; i < *argc; ++i) {
    const std::string_view argument = argv[i] == nullptr ? "" : argv[i];
    ours = ours && argument != "--";
    const bool alone = ours && i > 0 && argument == option;
    const bool joined = ours && i > 0 && argument.substr(0, option.size() + 1) == "--sucl-config=";
    if (!alone && !joined) {
      argv[kept++] = argv[i];
      continue;
    }
    if (alone && i + 1 < *argc && argv[i + 1] != nullptr)
      path = argv[++i];
    else
      path = joined ? argument.substr(option.size() + 1) : "";
    if (path.empty())
      fail(errc::configuration, "--sucl-config has no path", "Write --sucl-config PATH.");
  }
  for (int i = kept; i < *argc; ++i) argv[i] = nullptr;
  *argc = kept;
  return path;
}

config load_config(const std::string& path, const variables& environment) {
  draft d;
  set_defaults(d);
  load_chosen_file(d, path, environment);
  load_environment(d, environment);
  complete(d);
  return std::move(d.c);
}

config load_config(int* argc, char** argv) {
  const std::string path = take_config_argument(argc, argv);
  return load_config(path, sucl_variables());
}

}  // namespace sucl::base
