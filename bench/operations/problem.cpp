// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "problem.hpp"

#include "bench/reference/delivery.hpp"

#include <algorithm>

namespace sucl::bench {
namespace {

// All blocks are of one size here: with counts or without, the same is delivered.
kind without_counts(kind of) {
  switch (of) {
    case kind::reduce_scatter: return kind::reduce_scatter_block;
    case kind::allgatherv: return kind::allgather;
    case kind::alltoallv: return kind::alltoall;
    case kind::gatherv: return kind::gather;
    case kind::scatterv: return kind::scatter;
    default: return of;
  }
}

}  // namespace

const std::vector<collective>& collectives() {
  static const std::vector<collective> table{
      {kind::barrier, false, true},       {kind::broadcast, false, true},
      {kind::reduce, false, true},        {kind::allreduce, false, true},
      {kind::reduce_scatter, true, true}, {kind::reduce_scatter_block, false, true},
      {kind::allgather, false, true},     {kind::allgatherv, true, true},
      {kind::alltoall, false, true},      {kind::alltoallv, true, true},
      {kind::gather, false, true},        {kind::gatherv, true, true},
      {kind::scatter, false, true},       {kind::scatterv, true, true},
      {kind::scan, false, true},          {kind::exscan, false, true},
      {kind::sendrecv, false, false},
  };
  return table;
}

const collective& row_of(kind of) {
  return *std::find_if(collectives().begin(), collectives().end(),
                       [of](const collective& c) { return c.of == of; });
}

sucl_operation operation_of(const problem& p) {
  sucl_operation o{};
  o.kind = static_cast<sucl_kind>(without_counts(p.of));
  o.root = p.root;
  o.source = (p.rank + p.ranks - 1) % p.ranks;
  o.count = o.recv_count = p.count;
  return o;
}

std::uint64_t send_elements(const problem& p) {
  if (in_place(p)) return 0;
  return reference::end_of(reference::contributed(operation_of(p), p.rank, p.ranks));
}

std::uint64_t recv_elements(const problem& p) {
  const bool all_have = in_place(p) || p.of == kind::exscan;
  if (all_have) return p.count;
  return reference::end_of(reference::delivered(operation_of(p), p.rank, p.ranks));
}

bool in_place(const problem& p) { return p.of == kind::broadcast; }

}  // namespace sucl::bench
