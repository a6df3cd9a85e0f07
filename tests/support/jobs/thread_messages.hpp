// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Messages between ranks that are threads: a backend of sends and receives that never block, as a
/// transport for the executor. A send is done when its receive has taken the data, not before.
#pragma once

#include "core/operation/backend_comm.hpp"

#include <memory>

namespace sucl::testing {

/// What the ranks of one communicator share.
class message_board {
 public:
  message_board();
  ~message_board();
  /// The channel of a rank. Ended by its table's comm_destroy.
  core::backend_comm open(int rank);
  /// Whether every message was taken.
  bool empty();

  struct shared;

 private:
  std::shared_ptr<shared> m_shared;
};

}  // namespace sucl::testing
