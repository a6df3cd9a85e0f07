// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The ways of messages through a machine that is described as a graph.
#pragma once

#include "sim/model/machine.hpp"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace sucl::sim {

/// From one rank to another, through switches only.
struct way {
  double latency = 0;                ///< of all its links
  std::vector<std::uint32_t> links;  ///< in order, indices into graph::links
};

/// The ways of a graph, each found when it is first asked for: that of the least latency, of these
/// that of the fewest links, of these that of the largest bandwidth. Of those that are still alike
/// the one whose links come first. A way has at most max_way links.
class ways {
 public:
  explicit ways(const machine& m);

  /// Null where no switches join the two.
  const way* between(std::int32_t from, std::int32_t to);

 private:
  using ways_of = std::unordered_map<std::int32_t, way>;
  ways_of search(std::int32_t from) const;

  const machine& m_machine;
  std::int32_t m_ranks = 0;
  std::unordered_map<std::int32_t, std::vector<std::uint32_t>> m_out;  // links by node
  std::unordered_map<std::int32_t, ways_of> m_known;
};

}  // namespace sucl::sim
