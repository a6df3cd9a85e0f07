// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "net/library.hpp"

#include "net/kept_signals.hpp"
#include "net/problem.hpp"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace sucl::fabric {
namespace {

constexpr const char* soname = "libfabric.so.1";

template <class Function>
void find(void* handle, const char* name, Function*& function, const std::string& path) {
  function = reinterpret_cast<Function*>(dlsym(handle, name));
  if (function == nullptr)
    throw problem{SUCL_ERROR_UNAVAILABLE, "'" + path + "' has no function " + name,
                  "Give the path of libfabric.so.1 in fabric.library (SUCL_FABRIC_LIBRARY)."};
}

// The folder of Intel MPI's own, with its providers beside it.
std::string beside_intel_mpi() {
  const char* root = secure_getenv("I_MPI_ROOT");
  if (root == nullptr) return {};
  for (const char* path : {"/opt/mpi/libfabric/lib/", "/libfabric/lib/", "/lib/"}) {
    const std::string folder = std::string(root) + path;
    if (access((folder + soname).c_str(), R_OK) == 0) return folder;
  }
  return {};
}

// It does not search for its providers beside itself.
void show_providers(const std::string& folder) {
  if (secure_getenv("FI_PROVIDER_PATH") != nullptr) return;
  for (const std::string& path : {folder + "prov", folder})
    if (access((path + "/libtcp-fi.so").c_str(), R_OK) == 0) {
      setenv("FI_PROVIDER_PATH", path.c_str(), 0);
      return;
    }
}

void* open_any(const std::string& path, std::string& found) {
  found = path.empty() ? soname : path;
  void* handle = dlopen(found.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const std::string why = dlerror();
  const std::string folder = path.empty() ? beside_intel_mpi() : std::string();
  if (!folder.empty()) {
    show_providers(folder);
    found = folder + soname;
    handle = dlopen(found.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return handle;
  }
  throw problem{SUCL_ERROR_UNAVAILABLE, "libfabric cannot be loaded: " + why,
                path.empty() ? "Install libfabric (Debian: libfabric1), or give its path in "
                               "fabric.library (SUCL_FABRIC_LIBRARY)."
                             : "Correct fabric.library (SUCL_FABRIC_LIBRARY), or leave it out: "
                               "then the dynamic linker looks for libfabric.so.1."};
}

std::unique_ptr<library> load_now(const std::string& path) {
  const kept_signals kept;
  auto made = std::make_unique<library>();
  void* handle = open_any(path, made->path);
  find(handle, "fi_getinfo", made->getinfo, made->path);
  find(handle, "fi_freeinfo", made->freeinfo, made->path);
  find(handle, "fi_dupinfo", made->dupinfo, made->path);
  find(handle, "fi_fabric", made->open, made->path);
  find(handle, "fi_strerror", made->strerror, made->path);
  find(handle, "fi_version", made->version, made->path);
  Dl_info about{};
  if (dladdr(reinterpret_cast<const void*>(made->getinfo), &about) != 0 && about.dli_fname)
    made->path = about.dli_fname;
  return made;
}

}  // namespace

std::string library::text_of(std::int64_t code) const {
  return strerror(static_cast<int>(code < 0 ? -code : code));
}

std::string library::version_text() const {
  const std::uint32_t v = version();
  return std::to_string(FI_MAJOR(v)) + "." + std::to_string(FI_MINOR(v));
}

const library& load_library(const std::string& path) {
  static std::mutex mutex;
  static auto& loaded = *new std::map<std::string, std::unique_ptr<library>>;
  const std::lock_guard lock(mutex);
  auto& one = loaded[path];
  if (!one) {
    try {
      one = load_now(path);
    } catch (...) {
      loaded.erase(path);
      throw;
    }
  }
  return *one;
}

}  // namespace sucl::fabric
