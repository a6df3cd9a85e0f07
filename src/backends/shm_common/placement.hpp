// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Where the ranks of a communicator are, and how those that share no memory reach each other.
#pragma once

#include "core/operation/backend_comm.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace sucl::core {

/// How many nodes there are, of one entry a rank.
inline int count_nodes(std::vector<int> node_of) {
  std::sort(node_of.begin(), node_of.end());
  return static_cast<int>(std::unique(node_of.begin(), node_of.end()) - node_of.begin());
}

/// The ranks of a communicator, as the executor sees them. The same on every rank but for `rank`
/// and `threads`.
struct placement {
  int rank = 0;
  int size = 1;
  std::vector<int> node_of;  ///< one entry a rank
  /// The first transport sends what may go by any of them.
  std::vector<transport> transports;
  bool oversubscribed = false;  ///< on some machine ranks have to share processors
  bool compared = false;        ///< what ranks have called is compared above the backend
  int threads = 1;              ///< of this process that share a long copy, where there are several

  bool near(int peer) const {
    return node_of[static_cast<std::size_t>(peer)] == node_of[static_cast<std::size_t>(rank)];
  }
  int nodes() const { return count_nodes(node_of); }
  bool several_nodes() const { return nodes() > 1; }
  /// The ranks of this rank's node, itself among them.
  std::vector<int> neighbours() const {
    std::vector<int> list;
    for (int r = 0; r < size; ++r)
      if (near(r)) list.push_back(r);
    return list;
  }
};

}  // namespace sucl::core
