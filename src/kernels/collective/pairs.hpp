// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Exchanges in which only the two ends of a pair know how much they exchange, as in alltoallv: no
/// rank knows the largest block, by which a protocol for all could be chosen. So each pair has the
/// protocol of its own size. A rank whose pairs all have the same launches the kernel of
/// that protocol; any other rank moves each pair here in the same lines or pieces.
#pragma once

#include "kernels/collective/ll128.hpp"

namespace sucl::kernels {

/// The pairs of a list that exchange more than `above` and at most `most` bytes.
template <class List>
struct short_pairs {
  const List& all;
  std::uint64_t above, most;
  std::uint64_t at(int rank) const { return all.at(rank); }
  std::uint64_t bytes(int rank) const {
    const std::uint64_t bytes = all.bytes(rank);
    return bytes > above && bytes <= most ? bytes : 0;
  }
};

/// Those that exchange more, and what this rank has for itself.
template <class List>
struct long_pairs {
  const List& all;
  std::uint64_t most;
  int self;
  std::uint64_t at(int rank) const { return all.at(rank); }
  std::uint64_t bytes(int rank) const {
    return all.bytes(rank) > most || rank == self ? all.bytes(rank) : 0;
  }
};

template <class List, class Item, class Folder>
SUCL_INLINE void exchange_pairs(const Item& at, const exchange_args<List>& j, const memory_pair& m,
                                const Folder& folder) {
  const std::uint64_t few = j.ll_pair_bytes;
  const std::uint64_t more = j.ll128_pair_bytes > few ? j.ll128_pair_bytes : few;
  const exchange_args<short_pairs<List>> in_ll{j, {j.send, 0, few}, {j.recv, 0, few}};
  const exchange_args<short_pairs<List>> in_ll128{j, {j.send, few, more}, {j.recv, few, more}};
  const exchange_args<long_pairs<List>> staged{j, {j.send, more, j.rank}, {j.recv, more, j.rank}};
  push_ll<at_once>(at, in_ll, m);
  if (more > few) push_ll128<at_once>(at, in_ll128, m);
  exchange_staged<pieces_by_size>(at, staged, m, folder);
  bool ok = true;
  if (more > few) take_ll128<at_once>(at, in_ll128, m, ll128_at(j), ok);
  take_ll<at_once>(at, in_ll, m, 0, ok);
}

}  // namespace sucl::kernels
