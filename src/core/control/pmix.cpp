// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/control/pmix.hpp"

#include "base/error.hpp"
#include "core/control/control_plane.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace sucl::core {
namespace {

// What is used of the binary interface that the PMIx standard fixes, the same in versions 2 to 5.
// No header is needed to build, so that SuCL can be built where no launcher is.
namespace pmix {

enum : std::uint16_t { boolean = 1, string = 3, integer = 6 };
constexpr std::uint32_t whole_job = UINT32_MAX - 1;
constexpr std::uint8_t to_all = 3;
constexpr int success = 0;

struct process {
  std::array<char, 256> job{};
  std::uint32_t rank = 0;
};

struct value {
  std::uint16_t type = 0;
  union {
    bool flag;
    int integer;
    std::uint32_t number;
    char* text;
    std::array<std::uint64_t, 3> room{};
  };
};
static_assert(sizeof(value) == 32);

struct info {
  std::array<char, 512> key{};
  std::uint32_t flags = 0;
  value what;
};
static_assert(sizeof(info) == 552);

struct library {
  int (*init)(process*, info*, std::size_t);
  int (*finalize)(const info*, std::size_t);
  int (*put)(std::uint8_t, const char*, value*);
  int (*commit)();
  int (*fence)(const process*, std::size_t, const info*, std::size_t);
  int (*get)(const process*, const char*, const info*, std::size_t, value**);
  const char* (*error_string)(int);
};

}  // namespace pmix

// One for each runtime of this process, all of which have as many: a key keeps its first value.
std::string key_of_id() {
  static int runtimes = 0;
  return "sucl.id." + std::to_string(runtimes++);
}

std::vector<std::string> library_paths(const base::config& settings) {
  if (!settings.pmix.library.empty()) return {settings.pmix.library};
  std::vector<std::string> paths{"libpmix.so.2"};
  for (const char* name : {"PMIX_PREFIX", "PMIX_INSTALL_PREFIX"})
    if (const char* prefix = std::getenv(name); prefix && *prefix)
      for (const char* folder : {"/lib/", "/lib/openmpi/"})
        paths.push_back(prefix + std::string(folder) + paths.front());
  return paths;
}

pmix::library load(const base::config& settings) {
  void* handle = nullptr;
  std::string why;
  for (const std::string& path : library_paths(settings)) {
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: it has threads
    if (handle) break;
    if (const char* text = dlerror(); why.empty() && text) why = text;
  }
  constexpr auto hint =
      "Set pmix.library (SUCL_PMIX_LIBRARY) to the libpmix.so.2 of the launcher, on every node";
  if (!handle)
    base::fail(errc::unavailable,
               "a PMIx launcher has started this process, and its library cannot be loaded: " + why,
               hint);
  const auto function = [&](auto& pointer, const char* name) {
    pointer = reinterpret_cast<std::decay_t<decltype(pointer)>>(dlsym(handle, name));
    if (!pointer)
      base::fail(errc::unavailable, "the library of PMIx has no function " + std::string(name),
                 hint);
  };
  pmix::library l{};
  function(l.init, "PMIx_Init");
  function(l.finalize, "PMIx_Finalize");
  function(l.put, "PMIx_Put");
  function(l.commit, "PMIx_Commit");
  function(l.fence, "PMIx_Fence");
  function(l.get, "PMIx_Get");
  function(l.error_string, "PMIx_Error_string");
  return l;
}

void name(pmix::info& i, const char* key) { std::copy_n(key, std::strlen(key), i.key.begin()); }

/// The client of PMIx in this process, until its end.
class client {
 public:
  explicit client(const base::config& settings) : m_library(load(settings)) {
    check(m_library.init(&m_self, nullptr, 0), "PMIx_Init");
  }
  ~client() { m_library.finalize(nullptr, 0); }
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  int rank() const { return static_cast<int>(m_self.rank); }
  int size() const {
    pmix::value* v = get(pmix::whole_job, "pmix.job.size");
    const std::uint32_t n = v->number;
    std::free(v);
    return static_cast<int>(n);
  }

  void put(const std::string& key, std::string text) const {
    pmix::value v;
    v.type = pmix::string;
    v.text = text.data();
    check(m_library.put(pmix::to_all, key.c_str(), &v), "PMIx_Put");
    check(m_library.commit(), "PMIx_Commit");
  }

  /// What all have put is there for all.
  void fence(std::chrono::nanoseconds limit) const {
    std::array<pmix::info, 2> how;
    name(how[0], "pmix.collect");
    how[0].what.type = pmix::boolean;
    how[0].what.flag = true;
    name(how[1], "pmix.timeout");
    how[1].what.type = pmix::integer;
    how[1].what.integer =
        static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(limit).count()) + 1;
    pmix::process job = m_self;
    job.rank = pmix::whole_job;
    check(m_library.fence(&job, 1, how.data(), how.size()), "PMIx_Fence");
  }

  // What a rank has put before the fence. It has come to a fence of MPI_Init instead if there is
  // nothing.
  std::string text(std::uint32_t rank, const std::string& key) const {
    pmix::process of = m_self;
    of.rank = rank;
    pmix::info at_once;
    name(at_once, "pmix.immediate");
    at_once.what.type = pmix::boolean;
    at_once.what.flag = true;
    pmix::value* v = nullptr;
    if (m_library.get(&of, key.c_str(), &at_once, 1, &v) != pmix::success)
      base::fail(errc::unavailable,
                 "the control plane of this rank shall be tcp, and rank " + std::to_string(rank) +
                     " of the job has started another one",
                 "Set SUCL_CONTROL_PLANE alike on all ranks, or leave it unset");
    std::string found = v->type == pmix::string && v->text ? v->text : "";
    if (v->type == pmix::string) std::free(v->text);
    std::free(v);
    return found;
  }

 private:
  pmix::value* get(std::uint32_t rank, const std::string& key) const {
    pmix::process of = m_self;
    of.rank = rank;
    pmix::value* found = nullptr;
    check(m_library.get(&of, key.c_str(), nullptr, 0, &found), "PMIx_Get");
    return found;
  }

  void check(int status, const char* call) const {
    if (status == pmix::success) return;
    const char* text = m_library.error_string(status);
    base::fail(errc::unavailable,
               std::string("the PMIx launcher has refused ") + call + ": " +
                   (text ? text : "error " + std::to_string(status)),
               "Look for what the launcher says, and whether each rank has come that far; or start "
               "the ranks with `sucl run` or variables (SUCL_TCP_RANK and others)");
  }

  pmix::library m_library;
  pmix::process m_self;
};

}  // namespace

bool started_by_pmix(const variable_lookup& variable) {
  return variable("PMIX_RANK") && variable("PMIX_NAMESPACE");
}

launch find_pmix_launch(const base::config& settings) {
  const client here(settings);
  launch l;
  l.why = "the launcher's PMIx";
  l.rank = here.rank();
  l.size = here.size();
  const std::string key = key_of_id();
  const auto port = static_cast<std::uint16_t>(settings.tcp.port);
  here.put(key, l.rank == 0 ? make_job_id(settings.tcp.interface, port) : "comes");
  here.fence(settings.tcp.timeout);
  l.id = here.text(0, key);
  for (int r = 1; l.rank == 0 && r < l.size; ++r) here.text(static_cast<std::uint32_t>(r), key);
  return l;
}

}  // namespace sucl::core
