// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/patterns/tree.hpp"

#include <algorithm>

namespace sucl::plan {

tree_node tree_node_of(int position, int members, int radix) {
  tree_node node;
  std::int64_t stride = 1;
  while (stride < members && position / stride % radix == 0) {
    for (int digit = 1; digit < radix; ++digit) {
      const std::int64_t child = position + digit * stride;
      if (child >= members) break;
      node.children.push_back(
          {static_cast<int>(child), static_cast<int>(std::min(stride, members - child))});
    }
    stride *= radix;
  }
  if (position != 0) node.parent = static_cast<int>(position - position / stride % radix * stride);
  node.count = static_cast<int>(std::min<std::int64_t>(stride, members - position));
  return node;
}

namespace {

// Members counted from the root.
struct rooted_team {
  const team& t;
  int root;

  std::size_t member(int position) const {
    return static_cast<std::size_t>((position + root) % t.size());
  }
  int rank(int position) const { return t.ranks[member(position)]; }
  address base(int position) const { return t.base[member(position)]; }
  address input(int position) const { return t.input(member(position)); }
  bool apart(int position) const { return t.apart(member(position)); }
};

}  // namespace

void tree_broadcast(builder& b, const team& t, int root, std::uint64_t bytes, int radix) {
  const rooted_team from{t, root};
  for (int p = 0; p < t.size(); ++p) {
    const tree_node node = tree_node_of(p, t.size(), radix);
    if (node.parent >= 0) {
      b.receive(from.rank(p), from.rank(node.parent), from.base(p), bytes);
      b.fence(from.rank(p));
    }
    for (std::size_t c = node.children.size(); c-- > 0;)  // the largest subtree first
      b.send(from.rank(p), from.rank(node.children[c].position), from.base(p), bytes);
    b.fence(from.rank(p));
  }
}

void tree_reduce(builder& b, const team& t, int root, std::uint64_t bytes, int radix) {
  const rooted_team to{t, root};
  for (int p = 0; p < t.size(); ++p) {
    const tree_node node = tree_node_of(p, t.size(), radix);
    const int rank = to.rank(p);
    const std::uint64_t mark = b.scratch_mark(rank);
    std::vector<address> landing;
    const bool apart = to.apart(p);
    for (const tree_child& c : node.children) {
      landing.push_back(apart && landing.empty() ? to.base(p) : b.scratch(rank, bytes));
      b.receive(rank, to.rank(c.position), landing.back(), bytes);
    }
    for (std::size_t c = 0; c < landing.size(); ++c) {  // the smallest subtree first
      b.fence(rank, landing.size() - c - 1);
      b.reduce(rank, to.base(p), apart && c == 0 ? to.input(p) : landing[c], bytes);
    }
    if (node.parent >= 0) {
      b.send(rank, to.rank(node.parent), landing.empty() ? to.input(p) : to.base(p), bytes);
      b.fence(rank);
    } else if (landing.empty()) {
      b.copy(rank, to.base(p), to.input(p), bytes);
    }
    b.scratch_release(rank, mark);
  }
}

void chain_broadcast(builder& b, const team& t, int root, std::uint64_t bytes, int segments) {
  const rooted_team from{t, root};
  const ends cuts = cut_evenly(bytes, b.element(), segments);
  for (int p = 0; p < t.size(); ++p) {
    const int rank = from.rank(p);
    for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
      const std::uint64_t size = cuts[s + 1] - cuts[s];
      const address at = from.base(p) + cuts[s];
      if (p > 0) {
        b.receive(rank, from.rank(p - 1), at, size);
        b.fence(rank);  // also the send of the segment before
      }
      if (p + 1 < t.size()) b.send(rank, from.rank(p + 1), at, size);
    }
    b.fence(rank);
  }
}

void chain_reduce(builder& b, const team& t, int root, std::uint64_t bytes, int segments) {
  const rooted_team to{t, root};
  const ends cuts = cut_evenly(bytes, b.element(), segments);
  for (int p = 0; p < t.size(); ++p) {
    const int rank = to.rank(p);
    const std::uint64_t mark = b.scratch_mark(rank);
    const bool last = p + 1 == t.size(), apart = to.apart(p);
    const address landing = b.scratch(rank, last || apart ? 0 : cuts[1]);
    if (last && p == 0) b.copy(rank, to.base(p), to.input(p), bytes);
    for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
      const std::uint64_t size = cuts[s + 1] - cuts[s];
      const address at = to.base(p) + cuts[s], own = to.input(p) + cuts[s];
      if (!last) {
        b.receive(rank, to.rank(p + 1), apart ? at : landing, size);
        b.fence(rank);
        b.reduce(rank, at, apart ? own : landing, size);
      }
      if (p > 0) b.send(rank, to.rank(p - 1), last ? own : at, size);
    }
    b.fence(rank);
    b.scratch_release(rank, mark);
  }
}

}  // namespace sucl::plan
