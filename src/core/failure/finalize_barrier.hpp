// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How the processes of a job end together, or find out that they cannot.
#pragma once

#include "core/failure/peer_processes.hpp"
#include "core/operation/call_totals.hpp"

#include <sucl/abi/bootstrap.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace sucl::core {

/// An MPI library waits for every process when it is finalised, for ever if one of them is dead,
/// stuck or has left. So a process checks here first, and publishes its last calls.
class finalize_barrier {
 public:
  /// `everyone`: all processes of the job; the group stays the caller's, and is lost unless all
  /// arrive. `timeout`: of the watchdog, or 0. `limit`: how long to wait for others where the
  /// control plane can end without them; 0: it cannot.
  finalize_barrier(const sucl_bootstrap& control, sucl_group* everyone,
                   std::shared_ptr<peer_processes> peers, std::chrono::nanoseconds timeout,
                   std::chrono::nanoseconds limit);
  finalize_barrier(const finalize_barrier&) = delete;
  finalize_barrier& operator=(const finalize_barrier&) = delete;

  /// Signals the others that this process ends without finalising. Does not wait.
  void leave();

  struct outcome {
    std::string obstacle;              ///< why the library cannot be finalised; empty: it can
    bool is_new = false;               ///< that was not reported before
    std::vector<call_checksum> all{};  ///< of each process; none unless all have come
    bool over_limit = false;  ///< they have, but not together: `everyone` is of no more use
  };
  /// Shows the others that this process has come here. Does not wait.
  void start(const call_checksum& mine);
  /// Then waits until every process has, or one has left after an error, has died, or is stopped
  /// when the timeout is over, or the limit is. Of those that only take longer it warns once, if
  /// there is a timeout.
  outcome wait();
  /// Both.
  outcome wait(const call_checksum& mine) {
    start(mine);
    return wait();
  }

 private:
  struct exchange;
  const sucl_bootstrap& m_control;
  sucl_group* m_everyone;
  outcome poll_members(bool late) const;
  outcome wait_for_all();
  void warn_of_late() const;
  std::shared_ptr<peer_processes> m_peers;
  std::chrono::nanoseconds m_timeout, m_limit;
  int m_rank;
  int m_size;
  exchange* m_exchange = nullptr;  ///< once it has started; null: that has failed
};

}  // namespace sucl::core
