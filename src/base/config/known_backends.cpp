// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/config/keys.hpp"

#include <string>
#include <utility>
#include <vector>

namespace sucl::base {
namespace {

backend_entry backend(std::string name, std::vector<std::string> platforms,
                      backend_role role = backend_role::executor) {
  backend_entry e;
  e.name = std::move(name);
  e.platforms = std::move(platforms);
  e.role = role;
  return e;
}

backend_entry built_in(std::string name, bool recipes, bool protocols,
                       std::vector<std::string> platforms) {
  backend_entry e = backend(std::move(name), std::move(platforms));
  e.recipes = recipes;
  e.protocols = protocols;
  return e;
}

}  // namespace

std::vector<platform_entry> built_in_platforms() {
  return {{"cuda", {"ext_oneapi_cuda"}, {"cuda"}},
          {"hip", {"ext_oneapi_hip"}, {"hip"}},
          {"level_zero", {"ext_oneapi_level_zero"}, {"level_zero"}},
          {"opencl", {"opencl"}, {"ocl"}},
          {"cpu", {"ext_oneapi_native_cpu"}, {"omp"}},
          {"host", {}, {}}};
}

// Those of vendors come first: selection asks the backends of a platform in this order.
std::vector<backend_entry> known_backends() {
  std::vector<backend_entry> all{backend("nccl", {"cuda"}), backend("rccl", {"hip"}),
                                 backend("mpi", {"*"}, backend_role::reference)};
#define SUCL_BUILT_IN_BACKEND(folder, name, recipes, protocols, ...) \
  all.push_back(built_in(#name, recipes, protocols, {__VA_ARGS__}));
#include "base/config/built_in_backends.def"
#undef SUCL_BUILT_IN_BACKEND
  all.push_back(backend("ipc", {}, backend_role::memory_provider));
  all.push_back(backend("fabric", {}, backend_role::network));
  all.push_back(backend("mock", {}));
  all.back().enabled = false;
  return all;
}

}  // namespace sucl::base
