// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "common/program/guard.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

namespace apps {

guard::guard(std::string where, const std::vector<sucl::member>& members, int rank)
    : m_where(std::move(where)) {
  const int node = members[static_cast<std::size_t>(rank)].node;
  for (const sucl::member& m : members) {
    if (m.rank == rank || m.node != node) continue;
    const auto process = static_cast<pid_t>(m.process);
    const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    if (descriptor < 0) continue;  // an old kernel, or a process of another container
    m_ranks.push_back(m.rank);
    m_descriptors.push_back(descriptor);
  }
  m_descriptors.push_back(eventfd(0, EFD_CLOEXEC));
  m_thread = std::thread([this] { watch(); });
}

guard::~guard() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(m_descriptors.back(), &one, sizeof one);
  m_thread.join();
  for (const int descriptor : m_descriptors) close(descriptor);
}

void guard::watch() {
  std::vector<pollfd> waiting;
  for (const int descriptor : m_descriptors) waiting.push_back({descriptor, POLLIN, 0});
  while (poll(waiting.data(), waiting.size(), -1) < 0) {
  }
  constexpr int grace = 1000;  // milliseconds
  if (poll(&waiting.back(), 1, grace) > 0) return;
  for (std::size_t i = 0; i < m_ranks.size(); ++i)
    if (waiting[i].revents != 0)
      std::fprintf(stderr, "%s: rank %d has died or left, and MPI waits for it without end\n",
                   m_where.c_str(), m_ranks[i]);
  std::fflush(nullptr);
  _exit(1);
}

}  // namespace apps
