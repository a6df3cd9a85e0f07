// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What Linux says of a process of this machine.
#pragma once

#include <sys/types.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

namespace sucl::base {

struct process_stat {
  std::string name;   ///< at most 15 characters, which may be brackets and spaces
  char state = '\0';  ///< 'T' stopped, 'Z' ended but not waited for
  pid_t parent = 0;
};

/// Nothing where the process is gone.
inline std::optional<process_stat> stat_of(pid_t process) {
  // "17 (name) S 16 ..."
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto begin = line.find('('), end = line.rfind(") ");
  if (begin == line.npos || end == line.npos || end + 4 > line.size()) return std::nullopt;
  return process_stat{line.substr(begin + 1, end - begin - 1), line[end + 2],
                      static_cast<pid_t>(std::atoi(line.c_str() + end + 4))};
}

}  // namespace sucl::base
