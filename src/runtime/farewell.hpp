// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How the processes of a watched job end together, or find out that they cannot.
#pragma once

#include "runtime/peers.hpp"

#include <sucl/abi/bootstrap.h>

#include <string>

namespace sucl::core {

/// An MPI library waits for every process when it is finalised, for ever if one of them is dead,
/// stuck or has left. So a process asks here first.
class farewell {
 public:
  /// Takes over a group of all processes of the job. Collective.
  farewell(const sucl_bootstrap& control, sucl_group* everyone);
  farewell(const farewell&) = delete;
  farewell& operator=(const farewell&) = delete;

  /// Tells the others that this process ends without finalising. Does not wait.
  void leave();

  /// Waits until every process has come here. Otherwise, as soon as one has left or died, returns
  /// why the library cannot be finalised.
  std::string wait();

 private:
  const sucl_bootstrap& m_control;
  sucl_group* m_everyone;  ///< freed after a wait that succeeded
  peer_processes m_peers;
  int m_rank;
  int m_size;
};

}  // namespace sucl::core
