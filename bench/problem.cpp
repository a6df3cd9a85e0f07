// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "problem.hpp"

#include <algorithm>

namespace sucl::bench {
namespace {

int last_rank(const problem& p) { return p.ranks - 1; }

contribution all_ranks(const problem& p, std::uint64_t i) { return {0, last_rank(p), i}; }
contribution up_to_me(const problem& p, std::uint64_t i) { return {0, p.rank, i}; }
contribution before_me(const problem& p, std::uint64_t i) { return {0, p.rank - 1, i}; }
contribution my_block_of_all_ranks(const problem& p, std::uint64_t i) {
  return {0, last_rank(p), static_cast<std::uint64_t>(p.rank) * p.count + i};
}
contribution the_root(const problem& p, std::uint64_t i) { return {p.root, p.root, i}; }
contribution my_block_of_the_root(const problem& p, std::uint64_t i) {
  return {p.root, p.root, static_cast<std::uint64_t>(p.rank) * p.count + i};
}
contribution each_in_turn(const problem& p, std::uint64_t i) {
  const auto rank = static_cast<int>(i / p.count);
  return {rank, rank, i % p.count};
}
contribution my_block_of_each(const problem& p, std::uint64_t i) {
  const auto rank = static_cast<int>(i / p.count);
  return {rank, rank, static_cast<std::uint64_t>(p.rank) * p.count + i % p.count};
}
contribution the_one_before(const problem& p, std::uint64_t i) {
  const int rank = (p.rank + p.ranks - 1) % p.ranks;
  return {rank, rank, i};
}

std::uint64_t elements(extent e, bool at_root_only, const problem& p) {
  if (e == extent::none || (at_root_only && p.rank != p.root)) return 0;
  return e == extent::one ? p.count : p.count * static_cast<std::uint64_t>(p.ranks);
}

}  // namespace

const std::vector<collective>& collectives() {
  using e = extent;
  static const std::vector<collective> table{
      {kind::barrier, e::none, false, e::none, false, false, true, nullptr},
      {kind::broadcast, e::none, false, e::one, false, false, true, the_root},
      {kind::reduce, e::one, false, e::one, true, false, true, all_ranks},
      {kind::allreduce, e::one, false, e::one, false, false, true, all_ranks},
      {kind::reduce_scatter, e::all, false, e::one, false, true, true, my_block_of_all_ranks},
      {kind::reduce_scatter_block, e::all, false, e::one, false, false, true,
       my_block_of_all_ranks},
      {kind::allgather, e::one, false, e::all, false, false, true, each_in_turn},
      {kind::allgatherv, e::one, false, e::all, false, true, true, each_in_turn},
      {kind::alltoall, e::all, false, e::all, false, false, true, my_block_of_each},
      {kind::alltoallv, e::all, false, e::all, false, true, true, my_block_of_each},
      {kind::gather, e::one, false, e::all, true, false, true, each_in_turn},
      {kind::gatherv, e::one, false, e::all, true, true, true, each_in_turn},
      {kind::scatter, e::all, true, e::one, false, false, true, my_block_of_the_root},
      {kind::scatterv, e::all, true, e::one, false, true, true, my_block_of_the_root},
      {kind::scan, e::one, false, e::one, false, false, true, up_to_me},
      {kind::exscan, e::one, false, e::one, false, false, true, before_me},
      {kind::sendrecv, e::one, false, e::one, false, false, false, the_one_before},
  };
  return table;
}

const collective& row_of(kind of) {
  return *std::find_if(collectives().begin(), collectives().end(),
                       [of](const collective& c) { return c.of == of; });
}

std::uint64_t send_elements(const problem& p) {
  const collective& c = row_of(p.of);
  return elements(c.send, c.send_at_root_only, p);
}

std::uint64_t recv_elements(const problem& p) {
  const collective& c = row_of(p.of);
  return elements(c.recv, c.recv_at_root_only, p);
}

bool in_place(const problem& p) { return p.of == kind::broadcast; }

}  // namespace sucl::bench
