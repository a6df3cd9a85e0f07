// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "launcher_processes.hpp"

#include "base/system/process_stat.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

namespace sucl::tools {
namespace {

namespace fs = std::filesystem;

// By parent, without zombies.
std::multimap<pid_t, pid_t> living_children() {
  std::multimap<pid_t, pid_t> children;
  std::error_code failed;
  for (fs::directory_iterator entry("/proc", failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string pid = entry->path().filename().string();
    if (!std::isdigit(static_cast<unsigned char>(pid.front()))) continue;
    const pid_t process = std::atoi(pid.c_str());
    const auto known = base::stat_of(process);
    if (known && known->state != 'Z') children.emplace(known->parent, process);
  }
  return children;
}

fs::path folder_of(pid_t process) {
  std::error_code failed;
  return fs::read_symlink("/proc/" + std::to_string(process) + "/exe", failed).parent_path();
}

}  // namespace

std::vector<pid_t> processes_of(pid_t launcher) {
  const auto children = living_children();
  std::vector<pid_t> all{launcher};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto [first, last] = children.equal_range(all[i]);
    std::for_each(first, last, [&](const auto& child) { all.push_back(child.second); });
  }
  return all;
}

bool is_left_alone(const std::vector<pid_t>& processes) {
  const fs::path folder = folder_of(processes.front());
  return !folder.empty() && std::all_of(processes.begin(), processes.end(), [&](pid_t process) {
    return folder_of(process) == folder;
  });
}

}  // namespace sucl::tools
