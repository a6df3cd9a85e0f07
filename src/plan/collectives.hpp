// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Whole collectives, made of patterns. Each function appends a complete collective to a builder,
/// for a problem that is not in place. The recipe is complete: no parameter is left to choose.
#pragma once

#include "plan/algorithms.hpp"
#include "plan/team.hpp"

namespace sucl::plan {

/// All ranks with their vectors at this place.
team everybody(const builder& b, place base);

void build_allreduce(builder& b, const recipe& r);
void build_reduce(builder& b, const recipe& r);
void build_broadcast(builder& b, const recipe& r);
void build_gather(builder& b, const recipe& r);          ///< gatherv too
void build_scatter(builder& b, const recipe& r);         ///< scatterv too
void build_allgather(builder& b, const recipe& r);       ///< allgatherv too
void build_reduce_scatter(builder& b, const recipe& r);  ///< block form too
void build_alltoall(builder& b, const recipe& r);        ///< alltoallv too
void build_scan(builder& b, const recipe& r);            ///< exscan too

/// Any problem: each rank reads all that its outcome is made of, `staged` from where its owners
/// have put it in their scratch, else from their inputs.
void build_one_shot(builder& b, bool staged);
/// Allreduce: each rank combines a chunk of what the others have staged, then copies theirs.
void build_staged_two_shot(builder& b);
/// Allreduce: the same from peers' inputs to all outputs, without staging.
void build_mapped_two_shot(builder& b);

}  // namespace sucl::plan
