// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "flag_exchange.hpp"

#include "base/error.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <string>

namespace sucl::bench {

flag_exchange::flag_exchange(const communicator& comm)
    : m_rank(comm.rank()),
      m_size(comm.size()),
      m_poll_limit(m_size > sysconf(_SC_NPROCESSORS_ONLN) ? 1000 : 100000) {
  m_bytes = sizeof(line) * static_cast<std::size_t>(m_size);
  int file = -1;
  std::array<std::int64_t, 2> handle{getpid(), -1};
  if (m_rank == 0) {
    file = memfd_create("sucl bench", MFD_CLOEXEC);
    if (file >= 0 && ftruncate(file, static_cast<off_t>(m_bytes)) == 0) handle[1] = file;
  }
  comm.blocking().broadcast(handle.data(), handle.size(), 0);
  if (m_rank != 0 && handle[1] >= 0) {
    const auto path = "/proc/" + std::to_string(handle[0]) + "/fd/" + std::to_string(handle[1]);
    file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  }
  void* memory = file >= 0 && handle[1] >= 0
                     ? mmap(nullptr, m_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                     : MAP_FAILED;
  comm.blocking().barrier();  // until here rank 0 keeps its descriptor open
  if (file >= 0) close(file);
  if (memory == MAP_FAILED)
    base::fail(errc::unavailable, "the ranks share no memory for flags",
               "Run on one node, where processes may open each other's descriptors");
  m_lines = static_cast<line*>(memory);
}

flag_exchange::~flag_exchange() {
  if (m_lines) munmap(m_lines, m_bytes);
}

void flag_exchange::run() {
  ++m_round;
  m_lines[m_rank].flag.store(m_round, std::memory_order_release);
  for (int k = 1; k < m_size; ++k) {
    const auto& theirs = m_lines[(m_rank + k) % m_size].flag;
    for (int polls = 0; theirs.load(std::memory_order_acquire) < m_round;)
      if (++polls % m_poll_limit == 0) sched_yield();
  }
}

}  // namespace sucl::bench
