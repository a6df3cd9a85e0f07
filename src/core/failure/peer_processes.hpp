// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What can be known of the other processes of a job without their help.
#pragma once

#include "core/operation/call_totals.hpp"

#include <sucl/abi/bootstrap.h>
#include <sucl/error.hpp>
#include <sucl/export.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sucl::core {

/// Why something failed, as ranks report it to each other: the first reason is passed on, and what
/// follows from it does not hide it.
struct diagnosis {
  errc code = errc::internal;
  std::string text;
};

struct board_slot;
struct job_board_header;

/// How a rank has ended a communicator, and what it has had it do before.
struct communicator_end {
  enum class manner : std::uint32_t {
    regular,
    left,    ///< an exception has passed its handle, or exit() was called
    failed,  ///< it could not be used any more
    died     ///< its process has ended without it
  };
  manner how = manner::regular;
  std::uint64_t calls = 0;    ///< collectives that were called
  std::uint64_t replays = 0;  ///< and those that were replayed
};

/// The error that a diagnosis is thrown as.
error_info info_of(const diagnosis& v);

/// Whether a process of this machine is stopped by a signal, or by a debugger.
bool is_stopped_process(std::int64_t process);

/// The processes of a job: their descriptors, and for those of this machine a board in shared
/// memory, of which each process writes its own part. A process that is gone is known by its
/// descriptor; whether it left, failed or died is on the board. The memory has no name, so nothing
/// is left behind. Any thread.
class SUCL_CORE_API peer_processes {
 public:
  /// Collective over a group of all processes of the job.
  peer_processes(const sucl_oob& oob, int rank, int size);
  /// One for each rank of this process, in a job whose processes have several: `counts` ranks each,
  /// numbered by process. Collective over a group of the processes, in which this one is `process`.
  static std::vector<std::shared_ptr<peer_processes>> of_ranks(const sucl_oob& oob, int process,
                                                               const std::vector<int>& counts);
  ~peer_processes();
  peer_processes(const peer_processes&) = delete;
  peer_processes& operator=(const peer_processes&) = delete;

  int rank() const { return m_rank; }
  int size() const { return static_cast<int>(m_peers.size()); }

  /// Whether it is another process of this machine.
  bool is_near(int rank) const { return at(rank).descriptor != none; }
  /// Its process has ended; where processes have several ranks, or it has ended its runtime well.
  bool has_ended(int rank) const;
  /// Its process is stopped by a signal, or by a debugger.
  bool is_stopped(int rank) const;

  /// It has failed, is another process of this machine and may not have written why yet.
  bool is_reporting(int rank) const;

  /// It ends its runtime, or has ended it.
  bool is_leaving(int rank) const;
  /// It has ended it in good order: finalized.
  bool has_finalized(int rank) const;
  /// What all processes have shown of their calls; none unless all have, on this machine.
  std::vector<call_checksum> checksums() const;
  /// What it has failed of first, if it has.
  std::optional<diagnosis> failure(int rank) const;
  /// The same, of a step of set-up with this label.
  std::optional<diagnosis> failure_in(int rank, const std::string& label) const;
  /// Whether it is known to be in the step with this label; nothing where that is not known.
  std::optional<bool> is_in(int rank, const std::string& label) const;
  /// The diagnosis that some process has published on a communicator.
  std::optional<diagnosis> published(std::uint64_t communicator) const;
  /// Grows with each diagnosis that is published on this machine.
  std::uint64_t published_so_far() const;

  /// How it has ended a communicator, if it has and that is not long ago.
  std::optional<communicator_end> end_of(int rank, std::uint64_t communicator) const;
  /// Grows with each end of a communicator on this machine.
  std::uint64_t ends_so_far() const;
  /// Whether what it publishes is seen here.
  bool is_seen(int rank) const { return at(rank).slot != nullptr; }

  /// Those of some ranks of the job that are not there any more, by their index in the list.
  struct departures {
    std::vector<int> died;
    std::vector<int> left;             ///< in good order
    std::optional<diagnosis> failure;  ///< why another one has ended, or is about to
    bool empty() const { return died.empty() && left.empty() && !failure; }
  };
  departures gone(const std::vector<int>& ranks) const;

  // What this process publishes.
  void leave();           ///< its runtime begins to end
  void mark_finalized();  ///< its runtime has ended, in good order
  void show(const call_checksum& calls);
  void fail(const diagnosis& why);  ///< the first one stays, until
  void recover();                   ///< it continues without the lost ranks
  void end_report();                ///< its error message is written
  void fail_in(const std::string& label, const diagnosis& why);
  int enter(const std::string& label);  ///< returns what is passed to exit()
  void exit(int line);
  void publish(std::uint64_t communicator, const diagnosis& v);
  void end(std::uint64_t communicator, const communicator_end& e);

 private:
  struct process_record;
  static std::vector<process_record> exchange_records(const sucl_oob& oob, int size, int memory);
  peer_processes(const std::vector<process_record>& records, int rank, bool owns);

  static constexpr int none = -2;  ///< not another process of this machine
  struct peer {
    std::int64_t process = 0;
    int descriptor = none;  ///< of pidfd_open; -1: it had ended before
    board_slot* slot = nullptr;
  };
  const peer& at(int rank) const { return m_peers[static_cast<std::size_t>(rank)]; }
  void map_board(std::int64_t owner, int descriptor, bool own);
  board_slot* own() const { return at(m_rank).slot; }

  int m_rank;
  bool m_shares_process = false;  ///< some process has several ranks
  std::vector<peer> m_peers;
  void* m_memory = nullptr;
  std::size_t m_bytes = 0;
  int m_descriptor = -1;  ///< of the memory, where this process has made it for the others
};

}  // namespace sucl::core
