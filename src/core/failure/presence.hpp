// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which ranks of a job have begun to start SuCL, before any library connects them.
#pragma once

#include <string>
#include <vector>

namespace sucl::core {

/// A mark that other processes of this machine see, by the variables of the launcher: a socket
/// without a path in the file system, which goes with the process.
class presence {
 public:
  presence();
  ~presence();
  presence(const presence&) = delete;
  presence& operator=(const presence&) = delete;

  struct report {
    bool known =
        false;  ///< the launcher has set enough variables, and all ranks are on this machine
    std::vector<int> missing;  ///< ranks that have not begun, or have died
    std::vector<int> stopped;
  };
  report poll() const;

 private:
  std::string m_job;  ///< the same for the ranks of one job; empty: not known
  int m_rank = -1;
  int m_size = 0;
  bool m_all_near = false;
  int m_socket = -1;
};

}  // namespace sucl::core
