// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_plan/plans/between_nodes.hpp"

#include "backends/shm_common/placement.hpp"

#include <algorithm>
#include <bit>

namespace sucl::core {

plan::recipe recipe_between_nodes(kind what, std::uint64_t bytes, const std::vector<int>& node_of) {
  const auto n = static_cast<std::uint64_t>(count_nodes(node_of));
  const std::uint64_t steps = std::bit_width(n - 1);  // log2, rounded up
  plan::recipe r;
  r.algorithm = "node_shot";
  r.nodes = node_of;
  r.leaders = bytes < many_leaders_bytes ? 1 : 0;
  const std::uint64_t direct = latency_bytes + (n - 1) * bytes;
  const std::uint64_t doubling = steps * (latency_bytes + bytes);
  const std::uint64_t halving = 2 * steps * latency_bytes + 2 * bytes * (n - 1) / n;
  const bool rooted_vector = what == kind::broadcast || what == kind::reduce;
  if (rooted_vector && doubling < direct) {
    r.algorithm = "two_level";
    r.leaders = 0;
  } else if (what == kind::allreduce && std::min(doubling, halving) < direct) {
    r.algorithm = "two_level";
    r.outer = doubling < halving ? "doubling" : std::has_single_bit(n) ? "exchange" : "cyclic";
  }
  return r;
}

plan::recipe ordered_recipe_between_nodes(kind what, std::uint64_t bytes, int ranks) {
  plan::recipe r;
  r.algorithm = "direct";
  const auto n = static_cast<std::uint64_t>(ranks);
  const std::uint64_t whole = latency_bytes + (n - 1) * bytes;
  const std::uint64_t in_chunks = 2 * latency_bytes + 2 * bytes * (n - 1) / n;
  if (what == kind::allreduce && ranks > 1 && whole < in_chunks) {
    r.algorithm = "doubling";
    r.radices = {ranks};
  }
  return r;
}

}  // namespace sucl::core
