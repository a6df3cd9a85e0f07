// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Backends and control planes as files: finding, checking and opening them.
#pragma once

#include <sucl/abi/bootstrap.h>
#include <sucl/error.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sucl::core {

/// A backend as the configuration names it.
struct backend_source {
  std::string name;
  /// A path (with a slash), or the name of a file to search for; empty: libsucl_backend_NAME.so.
  std::string file;
  std::vector<std::pair<std::string, std::string>> settings;  ///< handed to the backend's open
};

/// An opened backend. Its table and state are valid until the registry closes.
struct backend_handle {
  std::string name;
  std::string description;  ///< the backend's own words
  std::string path;         ///< of the module
  const sucl_backend* table = nullptr;
  sucl_state* state = nullptr;
};

/// What became of a backend that was tried: opened, or not and why.
struct backend_report {
  std::string name;
  std::string path;                   ///< of the module; what was searched for if it was not found
  std::string description;            ///< empty if it is not open
  std::optional<error_info> problem;  ///< why it cannot be used
};

/// Where modules given by a file name are searched for: the folder `sucl` beside libsucl_core, then
/// the folders in SUCL_MODULE_PATH (separated by colons), then the search path of the dynamic
/// linker.
SUCL_CORE_API std::vector<std::string> module_directories();

/// The path of a module file: `file` itself if it has a slash, otherwise the first match in
/// `directories`, otherwise `file`, for the dynamic linker to find.
SUCL_CORE_API std::string find_module(const std::string& file,
                                      const std::vector<std::string>& directories);

/// The control plane in a module. Throws sucl::error (errc::unavailable) that says what is wrong
/// with the file. The module stays loaded until the process ends.
SUCL_CORE_API const sucl_bootstrap& load_bootstrap(
    const std::string& file, const std::vector<std::string>& directories = module_directories());

/// The backends of a process. Each is opened once; modules stay loaded until the process ends,
/// because device runtimes and MPI do not survive being unloaded. One thread at a time.
class SUCL_CORE_API registry {
 public:
  explicit registry(std::vector<std::string> directories = module_directories());
  ~registry();
  registry(const registry&) = delete;
  registry& operator=(const registry&) = delete;

  /// The backend of this name, opened now unless it is open; throws sucl::error if it cannot be
  /// used. What was tried before keeps its outcome: the other fields count the first time only.
  const backend_handle& open(const backend_source& source);

  /// The same for a backend that is not required: null if it cannot be used; reports() says why.
  const backend_handle* try_open(const backend_source& source);

  /// Everything that was tried, in order.
  std::vector<backend_report> reports() const;

  /// Closes the backends, the last opened first. Their communicators must be destroyed.
  void close() noexcept;

 private:
  struct entry;
  entry& tried(const backend_source& source);
  void try_now(entry& e, const backend_source& source) const;

  std::vector<std::string> m_directories;
  mutable std::mutex m_mutex;  ///< threads may make communicators at once; guards what follows
  std::vector<std::unique_ptr<entry>> m_entries;
};

}  // namespace sucl::core
