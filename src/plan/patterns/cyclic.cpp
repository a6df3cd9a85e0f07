// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/patterns/team.hpp"

#include <algorithm>

namespace sucl::plan {
namespace {

// The vector of one member, rotated: its own chunk first, then those of the members after it.
struct rotated {
  int rank = 0;
  int member = 0;
  address base;  // in scratch
  ends offsets;  // of the chunks, by distance from the member

  address at(int distance) const { return base + offsets[static_cast<std::size_t>(distance)]; }
  std::uint64_t length(int first, int last) const {
    return offsets[static_cast<std::size_t>(last)] - offsets[static_cast<std::size_t>(first)];
  }
};

rotated rotate(builder& b, const team& t, const ends& cuts, int member) {
  const int n = t.size();
  rotated r{t.ranks[static_cast<std::size_t>(member)], member, {}, {0}};
  for (int d = 0; d < n; ++d) {
    const auto c = static_cast<std::size_t>((member + d) % n);
    r.offsets.push_back(r.offsets.back() + cuts[c + 1] - cuts[c]);
  }
  r.base = b.scratch(r.rank, cuts.back() - cuts.front());
  return r;
}

// Copies between the vector in place and the rotated one: two runs of chunks.
void copy_all(builder& b, const team& t, const ends& cuts, const rotated& r, bool in) {
  const auto self = static_cast<std::size_t>(r.member);
  const address base = in ? t.input(self) : t.base[self];
  const std::uint64_t tail = cuts.back() - cuts[self], head = cuts[self] - cuts.front();
  const address high = base + cuts[self], low = base + cuts.front();
  if (in) {
    b.copy(r.rank, r.base, high, tail);
    b.copy(r.rank, r.base + tail, low, head);
  } else {
    b.copy(r.rank, high, r.base, tail);
    b.copy(r.rank, low, r.base + tail, head);
  }
}

// How a shift goes: its radices, from the nearest members to the farthest, the last one as often as
// it takes; and how many messages of a step are in flight at once (0: all).
struct shift {
  const std::vector<int>& radices;
  int ports;

  // The numbers of chunks that are together before and after each step: 1, the first radix, its
  // product with the second, ..., n.
  std::vector<int> widths(int n) const {
    std::vector<int> list{1};
    while (list.back() < n) {
      const std::int64_t radix = radices[std::min(list.size(), radices.size()) - 1];
      list.push_back(static_cast<int>(std::min<std::int64_t>(n, list.back() * radix)));
    }
    return list;
  }
};

int neighbour(const team& t, int member, int distance) {
  const int n = t.size();
  return t.ranks[static_cast<std::size_t>(((member + distance) % n + n) % n)];
}

// Length of chunks [0, count) of the member at a distance, by that one's own rotation.
std::uint64_t length_at(const team& t, const ends& cuts, int member, int distance, int count) {
  const int n = t.size();
  std::uint64_t sum = 0;
  for (int d = 0; d < count; ++d) {
    const auto c = static_cast<std::size_t>((member + distance + d) % n);
    sum += cuts[c + 1] - cuts[c];
  }
  return sum;
}

// From wide to narrow: chunks at distance j * width and beyond go to the member at that distance.
void scatter_step(builder& b, const team& t, const rotated& r, int narrow, int wide, int ports) {
  const int partners = (wide - 1) / narrow, batch = batch_of(ports, partners);
  const auto chunks = [&](int k) { return std::min(narrow, wide - k * narrow); };
  const std::uint64_t mark = b.scratch_mark(r.rank);
  std::vector<address> landing;
  for (int k = 1; k <= batch; ++k) landing.push_back(b.scratch(r.rank, r.length(0, chunks(k))));
  for (int begin = 1; begin <= partners; begin += batch) {
    const int end = std::min(partners + 1, begin + batch);
    const auto in = [&](int k) { return landing[static_cast<std::size_t>(k - begin)]; };
    for (int k = begin; k < end; ++k) {
      const int first = k * narrow;
      b.send(r.rank, neighbour(t, r.member, first), r.at(first),
             r.length(first, first + chunks(k)));
      b.receive(r.rank, neighbour(t, r.member, -first), in(k), r.length(0, chunks(k)));
    }
    b.fence(r.rank);
    for (int k = begin; k < end; ++k) b.reduce(r.rank, r.base, in(k), r.length(0, chunks(k)));
  }
  b.scratch_release(r.rank, mark);
}

void scatter_steps(builder& b, const team& t, const rotated& r, const shift& how) {
  const std::vector<int> w = how.widths(t.size());
  for (std::size_t s = w.size() - 1; s-- > 0;) scatter_step(b, t, r, w[s], w[s + 1], how.ports);
}

// From narrow to wide: the first chunks of the member at each distance come in.
void gather_steps(builder& b, const team& t, const ends& cuts, const rotated& r, const shift& how) {
  const std::vector<int> w = how.widths(t.size());
  for (std::size_t s = 0; s + 1 < w.size(); ++s) {
    const int narrow = w[s], wide = w[s + 1];
    const int partners = (wide - 1) / narrow, batch = batch_of(how.ports, partners);
    for (int k = 1; k <= partners; ++k) {
      const int first = k * narrow, count = std::min(narrow, wide - first);
      b.send(r.rank, neighbour(t, r.member, -first), r.base, r.length(0, count));
      b.receive(r.rank, neighbour(t, r.member, first), r.at(first),
                length_at(t, cuts, r.member, first, count));
      if (k % batch == 0 || k == partners) b.fence(r.rank);
    }
  }
}

}  // namespace

void cyclic_reduce_scatter(builder& b, const team& t, const ends& cuts,
                           const std::vector<int>& radices, int ports) {
  const shift how{radices, ports};
  for (int m = 0; m < t.size(); ++m) {
    const std::uint64_t mark = b.scratch_mark(t.ranks[static_cast<std::size_t>(m)]);
    const rotated r = rotate(b, t, cuts, m);
    copy_all(b, t, cuts, r, true);
    scatter_steps(b, t, r, how);
    const auto self = static_cast<std::size_t>(m);
    b.copy(r.rank, t.base[self] + cuts[self], r.base, r.length(0, 1));
    b.scratch_release(r.rank, mark);
  }
}

void cyclic_allgather(builder& b, const team& t, const ends& cuts, const std::vector<int>& radices,
                      int ports) {
  const shift how{radices, ports};
  for (int m = 0; m < t.size(); ++m) {
    const std::uint64_t mark = b.scratch_mark(t.ranks[static_cast<std::size_t>(m)]);
    const rotated r = rotate(b, t, cuts, m);
    const auto self = static_cast<std::size_t>(m);
    b.copy(r.rank, r.base, t.base[self] + cuts[self], r.length(0, 1));
    gather_steps(b, t, cuts, r, how);
    copy_all(b, t, cuts, r, false);
    b.scratch_release(r.rank, mark);
  }
}

void cyclic_allreduce(builder& b, const team& t, const ends& cuts, const std::vector<int>& radices,
                      int ports) {
  const shift how{radices, ports};
  for (int m = 0; m < t.size(); ++m) {
    const std::uint64_t mark = b.scratch_mark(t.ranks[static_cast<std::size_t>(m)]);
    const rotated r = rotate(b, t, cuts, m);
    copy_all(b, t, cuts, r, true);
    scatter_steps(b, t, r, how);
    gather_steps(b, t, cuts, r, how);
    copy_all(b, t, cuts, r, false);
    b.scratch_release(r.rank, mark);
  }
}

}  // namespace sucl::plan
