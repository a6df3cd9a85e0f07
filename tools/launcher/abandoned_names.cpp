// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "abandoned_names.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace sucl::tools {
namespace {

namespace fs = std::filesystem;
constexpr std::array<std::string_view, 3> prefixes{"mpich_shm_", "Intel_MPI_", "ucx_shm_posix_"};

std::vector<std::string> candidates(std::time_t since, const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    const bool known = std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view prefix) {
      return name.compare(0, prefix.size(), prefix) == 0;
    });
    struct stat file{};
    if (known && lstat(entry->path().c_str(), &file) == 0 && S_ISREG(file.st_mode) &&
        file.st_uid == geteuid() && file.st_ctime >= since)
      found.push_back(entry->path().string());
  }
  return found;
}

void drop_mapped(const fs::path& process, std::vector<std::string>& names) {
  std::ifstream maps(process / "maps");
  for (std::string line; std::getline(maps, line);) {
    const auto at = line.find('/');
    if (at != line.npos) std::erase(names, line.substr(at));
  }
}

void drop_open(const fs::path& process, std::vector<std::string>& names) {
  std::error_code failed;
  for (fs::directory_iterator entry(process / "fd", failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::error_code closed;  // meanwhile
    std::erase(names, fs::read_symlink(entry->path(), closed).string());
  }
}

}  // namespace

void remove_abandoned_names(std::time_t since, const fs::path& folder) {
  std::vector<std::string> names = candidates(since, folder);
  std::error_code failed;
  for (fs::directory_iterator entry("/proc", failed), end;
       !names.empty() && !failed && entry != end; entry.increment(failed)) {
    const std::string pid = entry->path().filename().string();
    struct stat process{};
    if (!std::isdigit(static_cast<unsigned char>(pid.front())) ||
        stat(entry->path().c_str(), &process) != 0 || process.st_uid != geteuid())
      continue;
    drop_mapped(entry->path(), names);
    drop_open(entry->path(), names);
  }
  if (failed) return;
  for (const std::string& name : names) unlink(name.c_str());
}

}  // namespace sucl::tools
