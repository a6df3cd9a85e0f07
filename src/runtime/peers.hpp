// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Processes of this host whose end is watched.
#pragma once

#include <cstdint>
#include <vector>

namespace sucl::core {

/// Descriptors of other ranks' processes. Not copyable; one thread at a time.
class peer_processes {
 public:
  peer_processes() = default;
  ~peer_processes();
  peer_processes(const peer_processes&) = delete;
  peer_processes& operator=(const peer_processes&) = delete;

  /// Watches a process of this host and process namespace.
  void add(int rank, std::int64_t pid);

  /// The ranks whose process has ended.
  std::vector<int> ended() const;

 private:
  struct peer {
    int rank;
    int descriptor;  ///< from pidfd_open, readable once the process has ended; -1: it had before
  };
  std::vector<peer> m_peers;
};

}  // namespace sucl::core
