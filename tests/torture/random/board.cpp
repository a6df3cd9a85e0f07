// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "board.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace sucl::torture {

board::board(communicator comm, int rank, int ranks) : m_rank(rank), m_ranks(ranks) {
  if (ranks > max_ranks) throw std::runtime_error("more ranks than the board has lines");
  // Rank 0's file, by its descriptor: nothing is left behind, whatever happens.
  int where[2] = {0, 0};
  const std::size_t bytes = sizeof(line) * static_cast<std::size_t>(ranks);
  if (rank == 0) {
    where[0] = getpid();
    where[1] = memfd_create("sucl_torture", MFD_CLOEXEC);
    if (where[1] < 0 || ftruncate(where[1], static_cast<off_t>(bytes)) != 0)
      throw std::runtime_error("no memory for the board");
  }
  comm.blocking().broadcast(where, 2, 0);
  const std::string name = "/proc/" + std::to_string(where[0]) + "/fd/" + std::to_string(where[1]);
  const int file = open(name.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) throw std::runtime_error("cannot open the board " + name);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) throw std::runtime_error("cannot map the board");
  m_lines = static_cast<line*>(memory);
  barrier();
  if (rank == 0) close(where[1]);
}

board::~board() { munmap(m_lines, sizeof(line) * static_cast<std::size_t>(m_ranks)); }

void board::note(std::uint64_t group, std::uint64_t hash, std::uint64_t step) {
  row().notes[m_noted++] = {group, hash, step};
}

std::vector<std::uint64_t> board::compare() {
  barrier();
  std::vector<std::uint64_t> differing;
  for (std::size_t i = 0; i < m_noted; ++i) {
    const note_line& own = row().notes[i];
    if (own.group == 0) continue;
    for (int r = 0; r < m_ranks; ++r) {
      const note_line& other = m_lines[r].notes[i];
      if (other.group != own.group) continue;
      // The first rank of those that share the result speaks for all.
      if (r < m_rank && other.hash == own.hash) break;
      if (r < m_rank) {
        differing.push_back(own.step);
        break;
      }
    }
  }
  barrier();
  m_noted = 0;
  return differing;
}

std::uint64_t board::sum(int counter) const {
  std::uint64_t total = 0;
  for (int r = 0; r < m_ranks; ++r) total += m_lines[r].counters[static_cast<std::size_t>(counter)];
  return total;
}

void board::barrier(int seconds) {
  using clock = std::chrono::steady_clock;
  const std::uint64_t arrivals = row().arrivals.fetch_add(1, std::memory_order_acq_rel) + 1;
  const auto deadline = clock::now() + std::chrono::seconds(seconds);
  for (int r = 0; r < m_ranks; ++r)
    for (int polls = 0; m_lines[r].arrivals.load(std::memory_order_acquire) < arrivals; ++polls) {
      if (polls < 1000)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      if (polls % 1024 != 1023 || clock::now() < deadline) continue;
      std::fprintf(stderr, "rank %d: rank %d does not come; it is at step %llu\n", m_rank, r,
                   static_cast<unsigned long long>(m_lines[r].step.load()));
      std::_Exit(4);
    }
}

}  // namespace sucl::torture
