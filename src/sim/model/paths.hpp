// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The paths of messages through a machine that is described as a graph.
#pragma once

#include "sim/model/machine.hpp"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace sucl::sim {

/// From one rank to another, through switches only.
struct path {
  double latency = 0;                ///< of all its links
  std::vector<std::uint32_t> links;  ///< in order, indices into graph::links
};

/// The shortest paths of a graph, each searched for at its first use: the path of least latency, of
/// these the one with the fewest links, of these the one with the largest bandwidth, of these the
/// one whose links come first. A path has at most max_hops links.
class paths {
 public:
  explicit paths(const machine& m);

  /// Null where no switches join the two.
  const path* between(std::int32_t from, std::int32_t to);

 private:
  using paths_from = std::unordered_map<std::int32_t, path>;
  paths_from search(std::int32_t from) const;

  const machine& m_machine;
  std::int32_t m_ranks = 0;
  std::unordered_map<std::int32_t, std::vector<std::uint32_t>> m_out;  // links by node
  std::unordered_map<std::int32_t, paths_from> m_known;
};

}  // namespace sucl::sim
