// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "delivery.hpp"

#include <algorithm>

namespace sucl::reference {
namespace {

std::vector<block> listed(const std::uint64_t* counts, const std::uint64_t* displs, int ranks) {
  std::vector<block> blocks;
  for (int r = 0; r < ranks; ++r) blocks.push_back({displs[r], counts[r]});
  return blocks;
}

// Block `number` of what each rank contributes, from `offset` on; one below the other.
std::vector<piece> of_each(const std::vector<block>& where, std::size_t number,
                           std::uint64_t offset) {
  std::vector<piece> pieces;
  for (const block& b : where) {
    const int rank = static_cast<int>(pieces.size());
    pieces.push_back({b.at, b.count, rank, rank, number, offset});
  }
  return pieces;
}

std::vector<block> equal(std::uint64_t count, int ranks) {
  std::vector<block> blocks;
  for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(ranks); ++r)
    blocks.push_back({r * count, count});
  return blocks;
}

template <class Run>
std::uint64_t end(const std::vector<Run>& runs) {
  std::uint64_t result = 0;
  for (const Run& r : runs) result = std::max(result, r.at + r.count);
  return result;
}

std::uint64_t sum(const std::uint64_t* counts, int n) {
  std::uint64_t result = 0;
  for (int r = 0; r < n; ++r) result += counts[r];
  return result;
}

bool in_place(const sucl_operation& o) { return (o.flags & SUCL_FLAG_IN_PLACE) != 0; }

}  // namespace

std::vector<block> contributed(const sucl_operation& o, int rank, int ranks) {
  const auto p = static_cast<std::uint64_t>(ranks);
  const auto me = static_cast<std::uint64_t>(rank);
  const bool root = o.root == rank;
  const bool inside = in_place(o);
  const std::vector<block> nothing;
  switch (o.kind) {
    case SUCL_KIND_BARRIER:
    case SUCL_KIND_RECV: return nothing;
    case SUCL_KIND_BROADCAST: return root ? std::vector<block>{{0, o.count}} : nothing;
    case SUCL_KIND_REDUCE_SCATTER: return {{0, sum(o.recv_counts, ranks)}};
    case SUCL_KIND_REDUCE_SCATTER_BLOCK:
    case SUCL_KIND_ALLTOALL: return {{0, p * o.count}};
    case SUCL_KIND_ALLGATHER: return {{inside ? me * o.count : 0, o.count}};
    case SUCL_KIND_ALLGATHERV: return {{inside ? o.recv_displs[rank] : 0, o.recv_counts[rank]}};
    case SUCL_KIND_ALLTOALLV:
      return inside ? listed(o.recv_counts, o.recv_displs, ranks)
                    : listed(o.send_counts, o.send_displs, ranks);
    case SUCL_KIND_GATHER: return {{inside && root ? me * o.count : 0, o.count}};
    case SUCL_KIND_GATHERV: return {{inside && root ? o.recv_displs[rank] : 0, o.count}};
    case SUCL_KIND_SCATTER: return root ? std::vector<block>{{0, p * o.count}} : nothing;
    case SUCL_KIND_SCATTERV: return root ? listed(o.send_counts, o.send_displs, ranks) : nothing;
    default: return {{0, o.count}};
  }
}

std::vector<piece> delivered(const sucl_operation& o, int rank, int ranks) {
  const auto me = static_cast<std::uint64_t>(rank);
  const bool root = o.root == rank;
  const std::vector<piece> nothing;
  const auto reduced = [&](int last, std::uint64_t count, std::uint64_t from) {
    return std::vector<piece>{{0, count, 0, last, 0, from}};
  };
  const auto moved = [&](int from, std::size_t number, std::uint64_t offset) {
    return std::vector<piece>{{0, o.count, from, from, number, offset}};
  };
  switch (o.kind) {
    case SUCL_KIND_BARRIER:
    case SUCL_KIND_SEND: return nothing;
    case SUCL_KIND_BROADCAST: return root ? nothing : moved(o.root, 0, 0);
    case SUCL_KIND_REDUCE: return root ? reduced(ranks - 1, o.count, 0) : nothing;
    case SUCL_KIND_ALLREDUCE: return reduced(ranks - 1, o.count, 0);
    case SUCL_KIND_SCAN: return reduced(rank, o.count, 0);
    case SUCL_KIND_EXSCAN: return rank > 0 ? reduced(rank - 1, o.count, 0) : nothing;
    case SUCL_KIND_REDUCE_SCATTER:
      return reduced(ranks - 1, o.recv_counts[rank], sum(o.recv_counts, rank));
    case SUCL_KIND_REDUCE_SCATTER_BLOCK: return reduced(ranks - 1, o.count, me * o.count);
    case SUCL_KIND_ALLGATHER: return of_each(equal(o.count, ranks), 0, 0);
    case SUCL_KIND_ALLGATHERV: return of_each(listed(o.recv_counts, o.recv_displs, ranks), 0, 0);
    case SUCL_KIND_ALLTOALL: return of_each(equal(o.count, ranks), 0, me * o.count);
    case SUCL_KIND_ALLTOALLV: return of_each(listed(o.recv_counts, o.recv_displs, ranks), me, 0);
    case SUCL_KIND_GATHER: return root ? of_each(equal(o.count, ranks), 0, 0) : nothing;
    case SUCL_KIND_GATHERV:
      return root ? of_each(listed(o.recv_counts, o.recv_displs, ranks), 0, 0) : nothing;
    case SUCL_KIND_SCATTER: return root && in_place(o) ? nothing : moved(o.root, 0, me * o.count);
    case SUCL_KIND_SCATTERV: return root && in_place(o) ? nothing : moved(o.root, me, 0);
    case SUCL_KIND_SENDRECV: return {{0, o.recv_count, o.source, o.source, 0, 0}};
    default: return moved(o.source, 0, 0);
  }
}

std::uint64_t end_of(const std::vector<block>& blocks) { return end(blocks); }
std::uint64_t end_of(const std::vector<piece>& pieces) { return end(pieces); }

}  // namespace sucl::reference
