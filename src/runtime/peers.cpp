// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "runtime/peers.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace sucl::core {

peer_processes::~peer_processes() {
  for (const auto& p : m_peers)
    if (p.descriptor >= 0) close(p.descriptor);
}

void peer_processes::add(int rank, std::int64_t pid) {
  const auto fd = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
  // Old kernels lack the call; then only a process that answers no mail is noticed.
  if (fd >= 0 || errno == ESRCH) m_peers.push_back({rank, fd});
}

std::vector<int> peer_processes::ended() const {
  std::vector<int> ranks;
  for (const auto& p : m_peers) {
    pollfd query{p.descriptor, POLLIN, 0};
    if (p.descriptor < 0 || ::poll(&query, 1, 0) > 0) ranks.push_back(p.rank);
  }
  return ranks;
}

}  // namespace sucl::core
