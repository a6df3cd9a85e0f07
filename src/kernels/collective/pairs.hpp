// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Exchanges in which only the two ends of a pair know how much they exchange, as in alltoallv: no
/// rank knows the largest block, by which a protocol for all could be chosen. So each pair has the
/// protocol that its own size asks for. A rank whose pairs are all short launches the kernel of LL
/// or LL128; any other rank moves its short pairs here in the same lines, and the rest in pieces.
#pragma once

#include "kernels/collective/ll128.hpp"

namespace sucl::kernels {

/// The short pairs of a list.
template <class List>
struct short_pairs {
  const List& all;
  std::uint64_t most;
  std::uint64_t at(int rank) const { return all.at(rank); }
  std::uint64_t bytes(int rank) const { return all.bytes(rank) > most ? 0 : all.bytes(rank); }
};

/// The others, and what this rank has for itself.
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
  const std::uint64_t most = j.short_bytes;
  const exchange_args<short_pairs<List>> few{j, {j.send, most}, {j.recv, most}};
  const exchange_args<long_pairs<List>> many{j, {j.send, most, j.rank}, {j.recv, most, j.rank}};
  if (most > 0 && j.short_in_ll128)
    push_ll128<at_once>(at, few, m);
  else if (most > 0)
    push_ll<at_once>(at, few, m);
  exchange_staged(at, many, m, folder);
  bool ok = true;
  if (most > 0 && j.short_in_ll128)
    take_ll128<at_once>(at, few, m, ll128_at(j), ok);
  else if (most > 0)
    take_ll<at_once>(at, few, m, 0, ok);
}

}  // namespace sucl::kernels
