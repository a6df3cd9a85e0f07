// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/team.hpp"

#include <algorithm>

namespace sucl::plan {
namespace {

// The vector of one member, rotated: its own chunk first, then those of the members after it.
struct rotated {
  int rank = 0;
  int member = 0;
  place base;    // in scratch
  ends offsets;  // of the chunks, by distance from the member

  place at(int distance) const { return base + offsets[static_cast<std::size_t>(distance)]; }
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
  const place base = in ? t.input(self) : t.base[self];
  const std::uint64_t tail = cuts.back() - cuts[self], head = cuts[self] - cuts.front();
  const place high = base + cuts[self], low = base + cuts.front();
  if (in) {
    b.copy(r.rank, r.base, high, tail);
    b.copy(r.rank, r.base + tail, low, head);
  } else {
    b.copy(r.rank, high, r.base, tail);
    b.copy(r.rank, low, r.base + tail, head);
  }
}

// The numbers of chunks that are together before and after each step: 1, radix, ..., n.
std::vector<int> widths(int n, int radix) {
  std::vector<int> list{1};
  while (list.back() < n)
    list.push_back(static_cast<int>(std::min<std::int64_t>(n, std::int64_t{list.back()} * radix)));
  return list;
}

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
void scatter_steps(builder& b, const team& t, const rotated& r, int radix) {
  const std::vector<int> w = widths(t.size(), radix);
  for (std::size_t s = w.size() - 1; s-- > 0;) {
    const int narrow = w[s], wide = w[s + 1];
    const std::uint64_t mark = b.scratch_mark(r.rank);
    std::vector<place> landing;
    for (int first = narrow; first < wide; first += narrow) {
      const int count = std::min(narrow, wide - first);
      landing.push_back(b.scratch(r.rank, r.length(0, count)));
      b.send(r.rank, neighbour(t, r.member, first), r.at(first), r.length(first, first + count));
      b.receive(r.rank, neighbour(t, r.member, -first), landing.back(), r.length(0, count));
    }
    b.fence(r.rank);
    for (std::size_t k = 0; k < landing.size(); ++k) {
      const int first = narrow * static_cast<int>(k + 1);
      b.reduce(r.rank, r.base, landing[k], r.length(0, std::min(narrow, wide - first)));
    }
    b.scratch_release(r.rank, mark);
  }
}

// From narrow to wide: the first chunks of the member at each distance come in.
void gather_steps(builder& b, const team& t, const ends& cuts, const rotated& r, int radix) {
  const std::vector<int> w = widths(t.size(), radix);
  for (std::size_t s = 0; s + 1 < w.size(); ++s) {
    const int narrow = w[s], wide = w[s + 1];
    for (int first = narrow; first < wide; first += narrow) {
      const int count = std::min(narrow, wide - first);
      b.send(r.rank, neighbour(t, r.member, -first), r.base, r.length(0, count));
      b.receive(r.rank, neighbour(t, r.member, first), r.at(first),
                length_at(t, cuts, r.member, first, count));
    }
    b.fence(r.rank);
  }
}

}  // namespace

void cyclic_reduce_scatter(builder& b, const team& t, const ends& cuts, int radix) {
  for (int m = 0; m < t.size(); ++m) {
    const std::uint64_t mark = b.scratch_mark(t.ranks[static_cast<std::size_t>(m)]);
    const rotated r = rotate(b, t, cuts, m);
    copy_all(b, t, cuts, r, true);
    scatter_steps(b, t, r, radix);
    const auto self = static_cast<std::size_t>(m);
    b.copy(r.rank, t.base[self] + cuts[self], r.base, r.length(0, 1));
    b.scratch_release(r.rank, mark);
  }
}

void cyclic_allgather(builder& b, const team& t, const ends& cuts, int radix) {
  for (int m = 0; m < t.size(); ++m) {
    const std::uint64_t mark = b.scratch_mark(t.ranks[static_cast<std::size_t>(m)]);
    const rotated r = rotate(b, t, cuts, m);
    const auto self = static_cast<std::size_t>(m);
    b.copy(r.rank, r.base, t.base[self] + cuts[self], r.length(0, 1));
    gather_steps(b, t, cuts, r, radix);
    copy_all(b, t, cuts, r, false);
    b.scratch_release(r.rank, mark);
  }
}

void cyclic_allreduce(builder& b, const team& t, const ends& cuts, int radix) {
  for (int m = 0; m < t.size(); ++m) {
    const std::uint64_t mark = b.scratch_mark(t.ranks[static_cast<std::size_t>(m)]);
    const rotated r = rotate(b, t, cuts, m);
    copy_all(b, t, cuts, r, true);
    scatter_steps(b, t, r, radix);
    gather_steps(b, t, cuts, r, radix);
    copy_all(b, t, cuts, r, false);
    b.scratch_release(r.rank, mark);
  }
}

}  // namespace sucl::plan
