// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How the processes of a watched job end together, or find out that they cannot.
#pragma once

#include "core/failure/peer_processes.hpp"

#include <sucl/abi/bootstrap.h>

#include <chrono>
#include <memory>
#include <string>

namespace sucl::core {

/// An MPI library waits for every process when it is finalised, for ever if one of them is dead,
/// stuck or has left. So a process asks here first.
class finalize_barrier {
 public:
  /// Takes over a group of all processes of the job.
  finalize_barrier(const sucl_bootstrap& control, sucl_group* everyone,
                   std::shared_ptr<peer_processes> peers, std::chrono::nanoseconds timeout);
  finalize_barrier(const finalize_barrier&) = delete;
  finalize_barrier& operator=(const finalize_barrier&) = delete;

  /// Signals the others that this process ends without finalising. Does not wait.
  void leave();

  /// Why the library cannot be finalised.
  struct obstacle {
    std::string text;     ///< empty: it can
    bool is_new = false;  ///< it was not reported before
  };
  /// Waits until every process has come here, or one has left after an error, has died, or is
  /// stopped when the timeout is over. Of those that only take longer it warns once.
  obstacle wait();

 private:
  const sucl_bootstrap& m_control;
  sucl_group* m_everyone;  ///< freed after a wait that succeeded
  obstacle look(bool late) const;
  void warn_of_late() const;
  std::shared_ptr<peer_processes> m_peers;
  std::chrono::nanoseconds m_timeout;
  int m_rank;
  int m_size;
};

}  // namespace sucl::core
