// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Where the ranks of a communicator are, and how those that share no memory reach each other.
#pragma once

#include "runtime/channel.hpp"

#include <string>
#include <vector>

namespace sucl::core {

/// A backend that carries messages between ranks, on a channel that nobody else uses.
struct transport {
  std::string name;
  channel via;
};

/// The ranks of a communicator, as the executor sees them. The same on every rank but for `rank`.
struct placement {
  int rank = 0;
  int size = 1;
  std::vector<int> node_of;  ///< one entry a rank
  /// The first one carries what may go by any.
  std::vector<transport> transports;
  bool crowded = false;  ///< on some machine ranks have to share processors

  bool near(int peer) const {
    return node_of[static_cast<std::size_t>(peer)] == node_of[static_cast<std::size_t>(rank)];
  }
  bool several_nodes() const {
    for (const int n : node_of)
      if (n != node_of[0]) return true;
    return false;
  }
  /// The ranks of this rank's node, itself among them.
  std::vector<int> neighbours() const {
    std::vector<int> list;
    for (int r = 0; r < size; ++r)
      if (near(r)) list.push_back(r);
    return list;
  }
};

}  // namespace sucl::core
