// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/control/registry.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/system/library.hpp"
#include "core/exchange/core_services.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <span>
#include <string_view>

namespace sucl::core {
namespace {

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string version(std::uint32_t major, std::uint32_t minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

// A table's fields that must not be null, by their offset in the struct.
struct needed_field {
  const char* name;
  std::size_t offset;
};

#define SUCL_NEEDED(Table, field) \
  needed_field { #field, offsetof(Table, field) }

constexpr needed_field backend_fields[] = {
    SUCL_NEEDED(sucl_backend, name),        SUCL_NEEDED(sucl_backend, open),
    SUCL_NEEDED(sucl_backend, close),       SUCL_NEEDED(sucl_backend, query),
    SUCL_NEEDED(sucl_backend, comm_create), SUCL_NEEDED(sucl_backend, comm_destroy),
    SUCL_NEEDED(sucl_backend, post),        SUCL_NEEDED(sucl_backend, test),
    SUCL_NEEDED(sucl_backend, abort)};

constexpr needed_field bootstrap_fields[] = {
    SUCL_NEEDED(sucl_bootstrap, name),        SUCL_NEEDED(sucl_bootstrap, init),
    SUCL_NEEDED(sucl_bootstrap, finalize),    SUCL_NEEDED(sucl_bootstrap, alive),
    SUCL_NEEDED(sucl_bootstrap, at_finalize), SUCL_NEEDED(sucl_bootstrap, group_world),
    SUCL_NEEDED(sucl_bootstrap, group_adopt), SUCL_NEEDED(sucl_bootstrap, group_split),
    SUCL_NEEDED(sucl_bootstrap, group_free),  SUCL_NEEDED(sucl_bootstrap, group_rank),
    SUCL_NEEDED(sucl_bootstrap, group_size),  SUCL_NEEDED(sucl_bootstrap, group_native),
    SUCL_NEEDED(sucl_bootstrap, allgather),   SUCL_NEEDED(sucl_bootstrap, allgather_start),
    SUCL_NEEDED(sucl_bootstrap, test),        SUCL_NEEDED(sucl_bootstrap, notify),
    SUCL_NEEDED(sucl_bootstrap, poll),        SUCL_NEEDED(sucl_bootstrap, abort)};

#undef SUCL_NEEDED

// The two kinds of table of a module. `least` bytes are what version 1.0 of the contract had: the
// core uses no more of a table that is not longer.
struct contract {
  const char* table;
  const char* symbol;
  std::size_t least;
  std::span<const needed_field> fields;
};

const contract backend_contract{"sucl_backend", SUCL_BACKEND_ENTRY,
                                offsetof(sucl_backend, abort) + sizeof(sucl_backend::abort),
                                backend_fields};
const contract bootstrap_contract{"sucl_bootstrap", SUCL_BOOTSTRAP_ENTRY,
                                  offsetof(sucl_bootstrap, abort) + sizeof(sucl_bootstrap::abort),
                                  bootstrap_fields};

constexpr const char* rebuild_hint =
    "Rebuild the module against the headers in sucl/abi of this SuCL, or use the SuCL that it was "
    "built for.";

// The fields with which every version of a table begins.
struct table_head {
  std::uint32_t struct_size;
  std::uint32_t abi_major;
  std::uint32_t abi_minor;
};

void check_table(const contract& c, const void* table, const std::string& path) {
  const std::string own = version(SUCL_ABI_MAJOR, SUCL_ABI_MINOR);
  if (!table)
    base::fail(errc::unavailable,
               in_quotes(path) + " does not work with this SuCL: " + c.symbol +
                   " gave no table for version " + own + " of the contract",
               rebuild_hint);
  table_head head;
  std::memcpy(&head, table, sizeof head);
  if (head.abi_major != SUCL_ABI_MAJOR)
    base::fail(errc::unavailable,
               in_quotes(path) + " was built for version " +
                   version(head.abi_major, head.abi_minor) +
                   " of the contract; this SuCL has version " + own + ", and the first number " +
                   "must be the same",
               rebuild_hint);
  if (head.struct_size < c.least)
    base::fail(errc::unavailable,
               in_quotes(path) + " has a table " + c.table + " of " +
                   std::to_string(head.struct_size) + " bytes; version " +
                   version(SUCL_ABI_MAJOR, 0) + " has at least " + std::to_string(c.least),
               "The module must set struct_size to sizeof(" + std::string(c.table) + ").");
  for (const needed_field& field : c.fields) {
    const void* value;
    std::memcpy(&value, static_cast<const char*>(table) + field.offset, sizeof value);
    if (!value)
      base::fail(errc::unavailable,
                 in_quotes(path) + " has a null '" + field.name + "' in its " + c.table,
                 "The module must define it: the contract has no optional functions.");
  }
}

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ", ") + item;
  return text;
}

base::library load(const std::string& path, const std::vector<std::string>& directories) {
  try {
    return base::library::open(path);
  } catch (const error& e) {
    if (path.find('/') != path.npos) throw;
    // No path was given, so the cure is about the search.
    base::fail(e.code(), e.message() + ", nor in " + joined(directories),
               "Build or install the module, give its path in the configuration, or add its "
               "directory to SUCL_MODULE_PATH.");
  }
}

// Loads, checks and keeps a module. `Entry` is the type of its entry function.
template <class Entry>
auto load_table(const contract& c, const std::string& path,
                const std::vector<std::string>& directories) {
  // The module's initialisers happen before what any thread does with it after this lock.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  base::library library = load(path, directories);
  const auto entry = library.symbol_as<Entry>(c.symbol);
  const auto* table = entry(SUCL_ABI_MAJOR, SUCL_ABI_MINOR);
  check_table(c, table, path);
  static auto& loaded = *new std::vector<base::library>;  // never destroyed, so never unloaded
  loaded.push_back(std::move(library));
  return table;
}

}  // namespace

std::vector<std::string> module_directories() {
  std::vector<std::string> result;
  Dl_info about{};
  if (::dladdr(reinterpret_cast<const void*>(&find_module), &about) != 0 && about.dli_fname) {
    const std::string own = about.dli_fname;
    const auto slash = own.rfind('/');
    result.push_back((slash == own.npos ? std::string(".") : own.substr(0, slash)) + "/sucl");
  }
  const char* listed = secure_getenv("SUCL_MODULE_PATH");
  std::string_view rest = listed ? listed : "";
  while (!rest.empty()) {
    const auto colon = rest.find(':');
    if (colon != 0) result.emplace_back(rest.substr(0, colon));
    rest.remove_prefix(colon == rest.npos ? rest.size() : colon + 1);
  }
  return result;
}

std::string find_module(const std::string& file, const std::vector<std::string>& directories) {
  if (file.find('/') != file.npos) return file;
  for (const auto& directory : directories) {
    const std::string path = directory + "/" + file;
    if (::access(path.c_str(), F_OK) == 0) return path;
  }
  return file;
}

const sucl_bootstrap& load_bootstrap(const std::string& file,
                                     const std::vector<std::string>& directories) {
  return *load_table<sucl_bootstrap_entry_function>(bootstrap_contract,
                                                    find_module(file, directories), directories);
}

struct registry::entry {
  backend_handle handle;
  std::optional<error_info> problem;
};

registry::registry(std::vector<std::string> directories) : m_directories(std::move(directories)) {}

registry::~registry() { close(); }

// Fills the entry's handle; throws if the backend cannot be used.
void registry::try_now(entry& e, const backend_source& source) const {
  backend_handle& handle = e.handle;
  const auto* table =
      load_table<sucl_backend_entry_function>(backend_contract, handle.path, m_directories);
  if (source.name != table->name)
    base::fail(errc::configuration,
               in_quotes(handle.path) + " holds the backend " + in_quotes(table->name) + ", not " +
                   in_quotes(source.name),
               "Configure it as " + in_quotes(table->name) + ", or correct its path.");
  std::vector<sucl_setting> settings;
  for (const auto& [key, value] : source.settings) settings.push_back({key.c_str(), value.c_str()});
  const sucl_status status =
      table->open(&services(), settings.data(), settings.size(), &handle.state);
  if (status != SUCL_SUCCESS) throw_last(status, source.name);
  handle.table = table;
  handle.description = table->description ? table->description : "";
}

registry::entry& registry::tried(const backend_source& source) {
  const std::lock_guard lock(m_mutex);
  for (auto& e : m_entries)
    if (e->handle.name == source.name) return *e;
  entry& e = *m_entries.emplace_back(std::make_unique<entry>());
  e.handle.name = source.name;
  e.handle.path = find_module(
      source.file.empty() ? "libsucl_backend_" + source.name + ".so" : source.file, m_directories);
  try {
    try_now(e, source);
    base::log(base::log_level::info, "registry", "backend ", source.name, " from ", e.handle.path);
  } catch (const error& failed) {
    e.problem = failed.info();
    e.problem->backend = source.name;
    base::log(base::log_level::info, "registry", "backend ", source.name,
              " cannot be used: ", failed.what());
  }
  return e;
}

const backend_handle& registry::open(const backend_source& source) {
  const entry& e = tried(source);
  if (e.problem) throw error(*e.problem);
  return e.handle;
}

const backend_handle* registry::try_open(const backend_source& source) {
  const entry& e = tried(source);
  return e.problem ? nullptr : &e.handle;
}

std::vector<backend_report> registry::reports() const {
  const std::lock_guard lock(m_mutex);
  std::vector<backend_report> result;
  for (const auto& e : m_entries)
    result.push_back({e->handle.name, e->handle.path, e->handle.description, e->problem});
  return result;
}

void registry::close() noexcept {
  while (!m_entries.empty()) {
    const backend_handle& handle = m_entries.back()->handle;
    if (handle.table) handle.table->close(handle.state);
    m_entries.pop_back();
  }
}

}  // namespace sucl::core
