// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Whole collectives, made of patterns. Each function appends a complete collective to a builder,
/// for a problem that is not in place. The recipe is complete: no parameter is left to choose.
#pragma once

#include "plan/algorithms/algorithms.hpp"
#include "plan/patterns/team.hpp"

namespace sucl::plan {

/// All ranks with their vectors at this address.
team all_ranks(const builder& b, address base);

/// The same team with its members in this order.
team in_order(const team& t, const std::vector<int>& members);

/// Allreduce in place of a whole team by the pattern of this name; flags are for patterns that use
/// peers' memory.
void team_allreduce(builder& b, const team& t, std::uint64_t bytes, const recipe& r,
                    const std::string& pattern, std::uint64_t flag);

/// Ranks by their positions in a binomial tree whose edges join ranks at negabinary distances 1,
/// -1, 3, -5, 11, ... around the root, the farthest first: Bine trees (De Sensi and others 2025,
/// "distance halving"). An edge is a third shorter than one of the usual binomial tree, so fewer
/// edges cross between groups of neighbours. Ranks beyond the largest power of two keep their
/// position.
std::vector<int> bine_order(int ranks, int root);

void build_allreduce(builder& b, const recipe& r);
void build_reduce(builder& b, const recipe& r);
void build_broadcast(builder& b, const recipe& r);
void build_gather(builder& b, const recipe& r);          ///< gatherv too
void build_scatter(builder& b, const recipe& r);         ///< scatterv too
void build_allgather(builder& b, const recipe& r);       ///< allgatherv too
void build_reduce_scatter(builder& b, const recipe& r);  ///< block form too
void build_alltoall(builder& b, const recipe& r);        ///< alltoallv too
void build_scan(builder& b, const recipe& r);            ///< exscan too

/// What ranks do with each other's memory: nothing, as all is staged in scratch; load and store; or
/// copy from it, into their own.
enum class access { staged, mapped, read };

/// Any problem: each rank reads all that its outcome is made of, from where its owners have staged
/// it in their scratch, else from their inputs.
void build_one_shot(builder& b, access how);
/// Allreduce: each rank combines a chunk of what the others have staged, then copies theirs.
void build_staged_two_shot(builder& b);
/// Allreduce: the same from peers' inputs to all outputs, without staging.
void build_mapped_two_shot(builder& b);
/// Allreduce: the same where peers' memory can only be copied from.
void build_read_two_shot(builder& b);

/// The ranks of each node, by the node of each rank; nodes in the order of their first ranks.
std::vector<std::vector<int>> members_of(const std::vector<int>& node_of);

/// Any problem, for ranks on several nodes: what a node needs of another one is put together there
/// in shared scratch and sent in one step.
void build_node_shot(builder& b, const recipe& r);
/// Allreduce, reduce and broadcast: nodes combine and spread through shared scratch, their leaders
/// use a pattern of messages.
void build_two_level(builder& b, const recipe& r);

}  // namespace sucl::plan
