// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Notices ranks that die while others are in a blocking call of MPI, which would not return.
#pragma once

#include <sucl/member.hpp>

#include <string>
#include <thread>
#include <vector>

namespace apps {

/// A thread that sleeps until a process of another rank of this node ends. Then it ends this one
/// with exit code 1 and an error that names the rank, unless the guard is gone within a second, as
/// it is where all ranks end in good order. SuCL's own calls need none of this.
class guard {
 public:
  /// `where` begins the error; `rank` is this process's among the members.
  guard(std::string where, const std::vector<sucl::member>& members, int rank);
  ~guard();
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;

 private:
  void watch();

  std::string m_where;
  std::vector<int> m_ranks;        ///< that are watched
  std::vector<int> m_descriptors;  ///< of their processes, and last the one that ends the watch
  std::thread m_thread;
};

}  // namespace apps
