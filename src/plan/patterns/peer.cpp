// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/patterns/phase.hpp"
#include "plan/patterns/team.hpp"

namespace sucl::plan {

namespace {

// Raises the flag of these ranks and waits for theirs.
void synchronise(builder& b, int rank, const std::vector<int>& others, std::uint64_t flag) {
  for (const int o : others) b.signal(rank, o, flag);
  for (const int o : others) b.wait(rank, o, flag);
}

}  // namespace

void peer_barrier(builder& b, const team& t, std::uint64_t flag) {
  const int n = t.size();
  std::vector<int> others;
  for (int m = 0; m < n; ++m) {
    others.clear();
    for (int k = 1; k < n; ++k) others.push_back(t.ranks[static_cast<std::size_t>((m + k) % n)]);
    synchronise(b, t.ranks[static_cast<std::size_t>(m)], others, flag);
  }
}

void peer_reduce_scatter(builder& b, const team& t, const std::vector<address>& out,
                         const ends& cuts, std::uint64_t flag) {
  const int n = t.size();
  peer_barrier(b, t, flag);
  for (int m = 0; m < n; ++m) {
    const auto self = static_cast<std::size_t>(m);
    const int rank = t.ranks[self];
    const std::uint64_t size = cuts[self + 1] - cuts[self];
    const auto fold = [&](int member, bool first) {
      const auto other = static_cast<std::size_t>(member);
      const address part = t.base[other] + cuts[self];
      const bool own = member == m;
      if (first)
        b.copy(rank, out[self], own ? part : remote(part), size, own ? -1 : t.ranks[other]);
      else
        b.reduce(rank, out[self], own ? part : remote(part), size, own ? -1 : t.ranks[other]);
    };
    // Beginning with the own part spreads the reads; of the first two either may come first.
    const bool ranked = b.what().order == ordering::fixed && m != 0;
    const int begin = ranked ? (m == 1 ? 1 : 0) : m;
    fold(begin, true);
    for (int k = 1; k < n; ++k)
      fold(ranked && m == 1 && k == 1 ? 0 : ranked ? k : (m + k) % n, false);
  }
}

void peer_allgather(builder& b, const team& t, const ends& cuts, std::uint64_t flag) {
  const int n = t.size();
  peer_barrier(b, t, flag);
  for (int m = 0; m < n; ++m) {
    const auto self = static_cast<std::size_t>(m);
    const int rank = t.ranks[self];
    for (int k = 1; k < n; ++k) {
      const auto other = static_cast<std::size_t>((m + k) % n);
      b.get(rank, t.ranks[other], t.base[self] + cuts[other], remote(t.base[other] + cuts[other]),
            cuts[other + 1] - cuts[other]);
    }
    b.fence(rank);
  }
  peer_barrier(b, t, flag);
}

namespace {

std::vector<int> partners(const team& t, const phase& p, int member) {
  std::vector<int> ranks;
  for (int k = 1; k < p.factor; ++k)
    ranks.push_back(t.ranks[static_cast<std::size_t>(p.partner(member, k))]);
  return ranks;
}

}  // namespace

void peer_exchange(builder& b, const team& t, std::uint64_t bytes, const std::vector<int>& radices,
                   std::uint64_t flag) {
  const ends cuts = cut_evenly(bytes, b.element(), t.size());
  const auto list = phases(radices, false, t.size());
  const auto begin = [&](window w) { return cuts[static_cast<std::size_t>(w.first)]; };
  const auto size = [&](window w) {
    return cuts[static_cast<std::size_t>(w.first + w.count)] - begin(w);
  };
  for (int m = 0; m < t.size(); ++m) {
    const int rank = t.ranks[static_cast<std::size_t>(m)];
    const address base = t.base[static_cast<std::size_t>(m)];
    const auto w = windows(list, m, t.size());
    if (list.empty()) b.copy(rank, base, t.input(0), bytes);
    for (std::size_t p = 0; p < list.size(); ++p) {
      const std::uint64_t at = begin(w[p + 1]), length = size(w[p + 1]);
      synchronise(b, rank, partners(t, list[p], m), flag);
      if (p == 0) b.copy(rank, base + at, t.input(static_cast<std::size_t>(m)) + at, length);
      for (int k = 1; k < list[p].factor; ++k) {
        const auto other = static_cast<std::size_t>(list[p].partner(m, k));
        const address theirs = p == 0 ? t.input(other) : t.base[other];
        b.reduce(rank, base + at, remote(theirs + at), length, t.ranks[other]);
      }
    }
    for (std::size_t p = list.size(); p-- > 0;) {
      synchronise(b, rank, partners(t, list[p], m), flag);
      for (int k = 1; k < list[p].factor; ++k) {
        const auto other = static_cast<std::size_t>(list[p].partner(m, k));
        const window theirs = w[p].part((list[p].digit(m) + k) % list[p].factor, list[p].factor);
        b.get(rank, t.ranks[other], base + begin(theirs), remote(t.base[other] + begin(theirs)),
              size(theirs));
      }
      b.fence(rank);
    }
  }
  peer_barrier(b, t, flag);
}

}  // namespace sucl::plan
