// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which plan executes a collective over several nodes, as long as nothing has been measured.
#pragma once

#include "plan/algorithms/algorithms.hpp"

#include <cstdint>

namespace sucl::core {

/// The recipe for a slice of `bytes` bytes (as selection counts them) between the nodes of
/// `node_of`, one entry a rank.
///
/// Time is counted in bytes that a node could send meanwhile. A step costs `latency` and the bytes
/// that the busiest node sends or receives in it, with n nodes and N bytes:
///
///   node_shot              latency + (n - 1) N
///   two_level, doubling    log2 n (latency + N)           (tree, for broadcast and reduce)
///   two_level, exchange    2 log2 n latency + 2 N (n - 1) / n
///   two_level, cyclic      the same with log2 n rounded up, where n is no power of two
///
/// What only moves data, or reduces and scatters it, crosses the network once in any case, so it
/// takes the one step. One leader a node has the fewest messages; from `many_leaders` on all ranks
/// of a node share the work.
plan::recipe recipe_between_nodes(kind what, std::uint64_t bytes, const std::vector<int>& node_of);

/// The same in the fixed order of ranks (plan::ordering::fixed), for reductions whose order
/// matters: whole vectors to all, or a chunk to each and its result back.
plan::recipe ordered_recipe_between_nodes(kind what, std::uint64_t bytes, int ranks);

inline constexpr std::uint64_t latency_bytes = std::uint64_t{32} << 10;
inline constexpr std::uint64_t many_leaders_bytes = std::uint64_t{16} << 10;

}  // namespace sucl::core
