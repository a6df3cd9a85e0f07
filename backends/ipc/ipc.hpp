// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Memory that the processes of one node share: the host's, and that of devices.
#pragma once

#include "device_memory.hpp"
#include "tracer.hpp"

#include <sucl/abi/backend.h>

#include <cstdint>
#include <string>
#include <vector>

/// Settings of the backend, and what it found out about the system.
struct sucl_state {
  const sucl_core* core = nullptr;
  enum class handover { any, proc, socket } how = handover::any;
  bool reads = true;  ///< single-copy reads are wanted
};

namespace sucl::ipc {

/// The record of a rank for the others.
struct process_info {
  std::uint64_t host = 0;     ///< equal where processes see the same kernel and process numbers
  std::uint64_t process = 0;  ///< equal for ranks that are threads of one process
  std::int64_t pid = 0;
  std::uint64_t word = 0;  ///< address of a number that any process may read, for the probe
  ancestry started_by{};   ///< this process and those above it
};

/// The record of one segment of a rank.
struct segment_info {
  std::int64_t descriptor = -1;
  std::uint64_t device = 0;  ///< with the inode: which memory the descriptor has to be of
  std::uint64_t inode = 0;
  std::uint64_t mapping = 0;  ///< the mapping, for ranks of the same process
  std::uint64_t bytes = 0;    ///< of the segment, which peers map
  std::int64_t problem = 0;   ///< errno, or 0
};

}  // namespace sucl::ipc

struct sucl_backend_comm {
  sucl_state* state = nullptr;
  sucl_oob* oob = nullptr;
  std::int32_t rank = 0;
  std::int32_t size = 1;
  std::vector<std::int32_t> node_of;
  std::vector<sucl::ipc::process_info> infos;
  std::vector<char> readable;                        ///< one a rank: single-copy reads work
  std::unique_ptr<sucl::ipc::device_memory> device;  ///< null: none that can be mapped

  const sucl::ipc::process_info& mine() const { return infos[static_cast<std::size_t>(rank)]; }
  /// Whether `peer` is on this node, so that its memory can be mapped.
  bool near(std::int32_t peer) const {
    const auto p = static_cast<std::size_t>(peer);
    return node_of[p] == node_of[static_cast<std::size_t>(rank)] && infos[p].host == mine().host;
  }
  bool same_process(std::int32_t peer) const {
    const auto& p = infos[static_cast<std::size_t>(peer)];
    return p.process == mine().process && p.pid == mine().pid && p.host == mine().host;
  }
};

namespace sucl::ipc {

/// Gathers one `T` of each rank. Throws nothing; a failure is returned.
template <class T>
sucl_status gather(const sucl_backend_comm& c, const T& mine, std::vector<T>& all) {
  all.resize(static_cast<std::size_t>(c.size));
  return c.state->core->oob_allgather(c.oob, &mine, all.data(), sizeof(T));
}

/// Opens the descriptors of the segments of all near peers of other processes: `descriptors[r]`, or
/// -1. Collective over the communicator. Returns errno, or 0.
int take_by_proc(const sucl_backend_comm& c, const std::vector<segment_info>& infos,
                 std::vector<int>& descriptors);
/// The same by sending one's own over Unix sockets. `*status` is set where the exchange failed.
int take_by_socket(const sucl_backend_comm& c, int own, std::vector<int>& descriptors,
                   sucl_status* status);

sucl_status memory_create(sucl_backend_comm* comm, std::uint64_t bytes, sucl_region* region);
void memory_destroy(sucl_backend_comm* comm, sucl_region* region);
sucl_status memory_read(sucl_backend_comm* comm, std::int32_t rank, void* to, std::uint64_t from,
                        std::uint64_t bytes);

}  // namespace sucl::ipc
