// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The configuration: plain data, read once from a TOML file and environment variables.
#pragma once

#include "base/text.hpp"

#include <sucl/export.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sucl::base {

/// The names that the SYCL implementations give to one platform; what SuCL calls it is `name`.
struct platform_entry {
  std::string name;
  std::vector<std::string> dpcpp;        ///< enumerators of sycl::backend in DPC++
  std::vector<std::string> adaptivecpp;  ///< enumerators of sycl::backend in AdaptiveCpp
};

/// What a backend is to the others.
enum class backend_role {
  executor,         ///< it executes operations
  reference,        ///< it executes what no other does: MPI
  memory_provider,  ///< it shares memory among the ranks of a node, and executes what a rule or a
                    ///< platform names it for
  network           ///< it moves data between nodes where there is no MPI
};

/// A backend that may be loaded.
struct backend_entry {
  std::string name;
  std::string path;                    ///< of its module; "" for the one beside the core
  std::vector<std::string> platforms;  ///< canonical names; "*" for every platform
  bool enabled = true;
  std::vector<std::pair<std::string, std::string>> settings;  ///< handed to the backend as they are
  backend_role role = backend_role::executor;
  bool recipes = false;    ///< rows of tuning tables may give it recipes, slices, symmetric memory
  bool protocols = false;  ///< rows of tuning tables may give it protocols
};

/// The backends that exist without being configured.
SUCL_CORE_API std::vector<backend_entry> known_backends();

/// A selection rule: what it applies to, and the backends it wants, the best one first.
struct rule {
  std::vector<std::string> collectives{"*"};
  std::vector<std::string> platforms{"*"};
  std::vector<std::string> memories{"*"};
  range ranks;
  range nodes;
  range bytes;
  std::vector<std::string> backends;
  std::string origin;  ///< as in "file sucl.toml:12:1"
};

/// One value as text: what it is, where it came from, and how to change it.
struct setting_row {
  std::string key;
  std::string value;
  std::string origin;       ///< "default", "environment SUCL_TIMEOUT", "file sucl.toml:12:3"
  std::string environment;  ///< the variable that sets it
  std::string help;
  bool shared = false;  ///< must be the same on every rank
};

/// Every value, valid and complete. The meaning of each is in docs/reference/configuration.md.
struct config {
  std::optional<std::int64_t> threshold;
  std::string default_backend;
  std::string determinism;  ///< as determinism_named() takes it
  std::string control_plane;
  struct {
    std::string flavour;
    std::string module;
    std::string device_memory;
  } mpi;
  struct {
    std::string interface;
    std::uint64_t port = 0;
    std::chrono::nanoseconds timeout{0};
  } tcp;
  struct {
    std::string library;
  } pmix;
  struct {
    std::string provider;
    std::string library;
    std::string interface;
  } fabric;
  struct {
    std::uint64_t chunk = 0;
    std::uint64_t depth = 0;
  } staging;
  struct {
    std::uint64_t poll_us = 0;
    std::uint64_t spin_us = 0;
  } progress;
  struct {
    bool validate = false;
    std::string trace;
  } layers;
  struct {
    std::string folder;
  } record;
  struct {
    std::chrono::nanoseconds timeout{0};
  } watchdog;
  struct {
    std::string level;
  } log;
  struct {
    std::vector<std::uint64_t> size;  ///< ranks of each node, the last one's repeated; empty: found
  } nodes;
  struct {
    std::vector<std::string> of;  ///< names, of one rank each, from the start again; empty: found
  } islands;
  struct {
    std::string table;
  } tuning;
  struct {
    std::uint64_t after = 0;
    std::uint64_t trials = 0;
    bool summary = false;
    bool devices = true;
  } interpose;
  std::vector<platform_entry> platforms;  ///< in the order in which names are looked up
  std::vector<backend_entry> backends;    ///< in the order of the file, then the built-in ones
  std::vector<rule> rules;

  std::string file;                   ///< the file that was read; "" if there was none
  std::vector<setting_row> rows;      ///< every value, in the order of the table of keys
  std::vector<std::string> warnings;  ///< for the log, once a job: suspicious, not wrong

  SUCL_CORE_API const backend_entry* find_backend(std::string_view name) const noexcept;
  /// The first backend of this role, enabled or not; null: there is none.
  SUCL_CORE_API const backend_entry* find_backend(backend_role role) const noexcept;
  /// Whether the backend of this name has this role.
  SUCL_CORE_API bool has_role(std::string_view name, backend_role role) const noexcept;
};

/// Environment variables as names and values.
using variables = std::vector<std::pair<std::string, std::string>>;

/// The variables of this process whose names begin with SUCL_.
SUCL_CORE_API variables sucl_variables();

/// Removes "--sucl-config PATH" or "--sucl-config=PATH" from the arguments of main and returns
/// PATH, or "" if there is none. Both pointers may be null.
SUCL_CORE_API std::string take_config_argument(int* argc, char** argv);

/// Loads the configuration. A variable goes before the file, and the file before the defaults; the
/// file is `path`, or else SUCL_CONFIG, or else sucl.toml in the working directory if it exists.
/// Throws sucl::error (errc::configuration) with the location, the reason and the cure.
SUCL_CORE_API config load_config(const std::string& path, const variables& environment);

/// The same from the arguments of main and the environment of this process.
SUCL_CORE_API config load_config(int* argc, char** argv);

/// All values that must be the same on every rank: "key = value", one a line.
SUCL_CORE_API std::string shared_values(const config& c);

/// SYCL implementations that the platform table knows.
enum class sycl_implementation { dpcpp, adaptivecpp };

/// The canonical name of a platform that `implementation` calls `backend`; "" if none has it.
SUCL_CORE_API std::string platform_name(const config& c, sycl_implementation implementation,
                                        std::string_view backend);

/// The table of keys as a Markdown table, for the documentation.
SUCL_CORE_API std::string keys_markdown();

}  // namespace sucl::base
