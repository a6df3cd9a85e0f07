// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "measure/reading.hpp"

#include "bench/operations/problem.hpp"

#include "base/text.hpp"
#include "core/control/control_plane.hpp"
#include "core/control/launch.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace sucl::tools {

std::vector<kind> read_collectives(const words& list, const char* hint) {
  std::vector<kind> known;
  words chosen;
  for (const auto& row : bench::collectives()) known.push_back(row.of);
  for (const std::string& word : list)
    for (const std::string& part : base::split(word, ',')) {
      if (part != "all") chosen.push_back(part);
      for (const auto& row : bench::collectives())
        if (part == "all" && row.in_all) chosen.emplace_back(name(row.of));
    }
  if (chosen.empty()) wrong_usage(std::string("no collective to measure. ") + hint);
  return read_names(chosen, known, "collective");
}

void check_file(const std::string& option, const std::string& file) {
  if (file.empty()) return;
  const auto folder = std::filesystem::absolute(file).parent_path();
  if (access(folder.c_str(), W_OK) != 0)
    wrong_usage(option + ": cannot write to the folder '" + folder.string() +
                "'. Make it, or choose another file.");
}

std::optional<std::string> job_flavour() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  const auto without_mpi = [] {
    return core::find_launch([](const char* n) { return std::getenv(n); });
  };
  if (variable("SUCL_CONTROL_PLANE") == "tcp" && without_mpi()) return "";
  const std::string found = core::detect_flavour().name;
  if (found.empty()) return without_mpi() ? std::optional<std::string>("") : std::nullopt;
  const std::string prefix = "libsucl_mpi_";
  const std::string module = std::filesystem::path(variable("SUCL_MPI_MODULE")).stem().string();
  if (module.rfind(prefix, 0) == 0) return module.substr(prefix.size());
  const std::string set = variable("SUCL_MPI_FLAVOUR");
  return set.empty() || set == "auto" ? found : set;
}

}  // namespace sucl::tools
