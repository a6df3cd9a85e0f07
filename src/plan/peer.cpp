// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/team.hpp"

namespace sucl::plan {

std::uint64_t peer_barrier(builder& b, const team& t, std::uint64_t flag) {
  const int n = t.size();
  for (int m = 0; m < n; ++m) {
    const int rank = t.ranks[static_cast<std::size_t>(m)];
    for (int k = 1; k < n; ++k)
      b.signal(rank, t.ranks[static_cast<std::size_t>((m + k) % n)], flag);
    for (int k = 1; k < n; ++k)
      b.wait(rank, t.ranks[static_cast<std::size_t>((m + k) % n)], flag);
  }
  return flag + 1;
}

std::uint64_t peer_reduce_scatter(builder& b, const team& t, const std::vector<place>& out,
                                  const ends& cuts, std::uint64_t flag) {
  const int n = t.size();
  flag = peer_barrier(b, t, flag);
  for (int m = 0; m < n; ++m) {
    const auto self = static_cast<std::size_t>(m);
    const int rank = t.ranks[self];
    const std::uint64_t size = cuts[self + 1] - cuts[self];
    b.copy(rank, out[self], t.base[self] + cuts[self], size);
    for (int k = 1; k < n; ++k) {
      const auto other = static_cast<std::size_t>((m + k) % n);
      b.reduce(rank, out[self], remote(t.base[other] + cuts[self]), size, t.ranks[other]);
    }
  }
  return flag;
}

std::uint64_t peer_allgather(builder& b, const team& t, const ends& cuts, std::uint64_t flag) {
  const int n = t.size();
  flag = peer_barrier(b, t, flag);
  for (int m = 0; m < n; ++m) {
    const auto self = static_cast<std::size_t>(m);
    const int rank = t.ranks[self];
    for (int k = 1; k < n; ++k) {
      const auto other = static_cast<std::size_t>((m + k) % n);
      b.get(rank, t.ranks[other], t.base[self] + cuts[other],
            remote(t.base[other] + cuts[other]), cuts[other + 1] - cuts[other]);
    }
    b.fence(rank);
  }
  return peer_barrier(b, t, flag);
}

}  // namespace sucl::plan
