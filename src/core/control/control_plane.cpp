// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/control/control_plane.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace sucl::core {
namespace {

bool environment_has(std::string_view prefix) {
  for (char** entry = environ; entry && *entry; ++entry)
    if (std::string_view(*entry).substr(0, prefix.size()) == prefix) return true;
  return false;
}

flavour loaded_library() {
  using get_version = int (*)(char*, int*);
  auto* function = reinterpret_cast<get_version>(dlsym(RTLD_DEFAULT, "MPI_Get_library_version"));
  if (!function) return {};
  // MPI's own bound on the text is the library's; none of them is near this.
  std::array<char, 16384> text{};
  int length = 0;
  if (function(text.data(), &length) != 0) return {};
  const std::string_view version(text.data());
  const std::string why =
      "the process has loaded " + std::string(version.substr(0, version.find_first_of(",\n")));
  if (version.find("Open MPI") != std::string_view::npos) return {"openmpi", why};
  if (version.find("Intel(R) MPI") != std::string_view::npos) return {"impi", why};
  if (version.find("MPICH") != std::string_view::npos) return {"mpich", why};
  return {};
}

}  // namespace

flavour detect_flavour() {
  if (flavour found = loaded_library(); !found.name.empty()) return found;
  if (environment_has("OMPI_COMM_WORLD_SIZE="))
    return {"openmpi", "started by Open MPI's launcher"};
  if (environment_has("PMI_RANK=") || environment_has("PMI_SIZE=")) {
    // Hydra starts both; Intel's leaves more behind.
    if (environment_has("I_MPI_MPIRUN=") || environment_has("I_MPI_HYDRA") ||
        environment_has("I_MPI_INFO"))
      return {"impi", "started by Intel MPI's launcher"};
    return {"mpich", "started by a PMI launcher"};
  }
  if (environment_has("PMIX_RANK=")) return {"openmpi", "started by a PMIx launcher"};
  return {};
}

std::string control_plane_file(const base::config& settings, const std::string& flavour) {
  return settings.mpi.module.empty() ? "libsucl_mpi_" + flavour + ".so" : settings.mpi.module;
}

}  // namespace sucl::core
