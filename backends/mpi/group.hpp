// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Groups of the control plane. They need no communicator of MPI each, of which a library has room
/// for a few thousand: what they exchange are messages on one that all processes share, and a group
/// has two tags of it. Only a backend that executes operations by MPI gets a communicator.
#pragma once

#include "native.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

namespace sucl::mpi_module {

/// The most bytes of a message, without its head.
inline constexpr std::size_t max_message_bytes = 4096;

/// A message of the watchdog's. The head names its group: one that came too late for an earlier
/// group of the same tags is dropped.
struct control_message {
  struct contents {
    std::uint64_t serial = 0;
    std::array<char, max_message_bytes> text;
  };
  MPI_Request handle = MPI_REQUEST_NULL;
  std::size_t bytes = 0;  ///< of the text
  contents what;

  static constexpr std::size_t head = offsetof(contents, text);
};

/// The communicator that groups share, with its slots: a slot is a pair of tags. Those that are in
/// use by this process; a group's slot is one that is free at all its members. It takes over the
/// communicator, and frees it when the last group on it has ended.
class medium {
 public:
  explicit medium(MPI_Comm comm);
  ~medium();
  medium(const medium&) = delete;
  medium& operator=(const medium&) = delete;
  MPI_Comm comm() const { return m_comm; }
  int rank() const { return m_rank; }
  int size() const { return m_size; }

  /// Takes the first free slot from `least` on; -1: none left.
  int take_slot(int least);
  void give_back(int slot);
  /// An exchange was given up, whose messages may still come: the communicator stays.
  void keep() { m_kept = true; }

 private:
  MPI_Comm m_comm;
  std::atomic<bool> m_kept{false};
  int m_rank = 0, m_size = 1;
  int m_max = 0;
  std::mutex m_lock;
  std::vector<bool> m_taken;
};

}  // namespace sucl::mpi_module

/// An exchange that was started. One after another within a group, in order.
struct sucl_oob_request {
  std::vector<std::byte> blocks;  ///< the own one first, then those of the ranks that follow it
  std::byte* all = nullptr;
  std::uint64_t bytes = 0;
  int have = 1;  ///< blocks so far
  int coming = 0;
  MPI_Datatype block = MPI_DATATYPE_NULL;
  std::array<MPI_Request, 2> handles{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  bool done = false;
  int code = MPI_SUCCESS;
};

struct sucl_group {
  std::shared_ptr<sucl::mpi_module::medium> over;
  std::vector<int> members;  ///< their ranks in the medium
  int rank = 0;
  int size = 0;
  int slot = -1;
  std::uint64_t serial = 0;
  std::mutex exchange_lock;
  std::deque<sucl_oob_request*> exchanges;  ///< not at their end
  sucl::mpi_module::native_comm own;        ///< for backends; made when one asks
  std::mutex message_lock;
  std::list<std::unique_ptr<sucl::mpi_module::control_message>>
      sent;  ///< messages that MPI still reads
  std::unique_ptr<sucl::mpi_module::control_message> incoming;
  int incoming_from = -1;

  int exchange_tag() const { return 2 * slot; }
  int message_tag() const { return 2 * slot + 1; }
  bool spans_all_ranks() const;
};

namespace sucl::mpi_module {

/// Starts an exchange; it ends in test_exchange(). Collective, in order.
sucl_oob_request* start_exchange(sucl_group& group, const void* mine, void* all,
                                 std::uint64_t bytes);
/// Moves the group's exchanges on. True once this one has ended, with its code.
bool test_exchange(sucl_group& group, sucl_oob_request& exchange);
/// Both at once; returns MPI's code.
int exchange_now(sucl_group& group, const void* mine, void* all, std::uint64_t bytes);

/// The group of all processes. Collective.
sucl_status make_world(const sucl_core* core, sucl_group** group);
/// That of a communicator's processes. Collective over it.
sucl_status adopt(const sucl_core* core, MPI_Comm comm, sucl_group** group);
/// The ranks of its processes in a group, in their order; -1: not in it. Local.
std::vector<int> ranks_in(const sucl_group& group, MPI_Comm comm);
/// One for each colour, ordered by key. Collective.
sucl_status split(const sucl_core* core, sucl_group& group, std::int32_t colour, std::int32_t key,
                  sucl_group** result);
/// Makes the group's communicator of MPI if there is none. Collective.
sucl_status make_native(const sucl_core* core, sucl_group& group);
/// Lets go of a group and what it has, as far as it is unused.
void free_group(sucl_group* group);

}  // namespace sucl::mpi_module
