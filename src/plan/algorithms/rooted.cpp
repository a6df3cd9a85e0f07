// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/algorithms/collectives.hpp"
#include "plan/patterns/tree.hpp"

#include <algorithm>

namespace sucl::plan {
namespace {

// All ranks but the root, beginning after it, with vectors at `base`.
team others_than(const builder& b, int root, address base) {
  team t;
  for (int k = 1; k < b.ranks(); ++k) {
    t.ranks.push_back((root + k) % b.ranks());
    t.base.push_back(base);
  }
  return t;
}

// The root gives each other rank a chunk, and these gather.
void scatter_allgather(builder& b, const recipe& r, std::uint64_t offset, std::uint64_t bytes) {
  const int root = b.what().root;
  const team t = others_than(b, root, {space::recv, offset});
  if (t.size() == 0) return;
  const ends cuts = cut_evenly(bytes, b.element(), t.size());
  for (std::size_t m = 0; m < t.ranks.size(); ++m) {
    const std::uint64_t size = cuts[m + 1] - cuts[m];
    b.send(root, t.ranks[m], {space::send, offset + cuts[m]}, size);
    b.receive(t.ranks[m], root, t.base[m] + cuts[m], size);
    b.fence(t.ranks[m]);
  }
  b.fence(root);
  if (r.inner == "exchange")
    return exchange_allgather(b, t, cuts, factors_of(t.size(), 2), r.ports);
  if (r.inner == "cyclic") return cyclic_allgather(b, t, cuts, {2}, r.ports);
  if (r.inner == "direct") return direct_allgather(b, t, cuts, r.ports);
  ring_allgather(b, t, cuts);
}

// Every rank reads the root's memory.
void peer_broadcast(builder& b, std::uint64_t offset, std::uint64_t bytes, std::uint64_t flag) {
  const int root = b.what().root;
  for (const int r : others_than(b, root, {}).ranks) {
    b.signal(root, r, flag);
    b.wait(r, root, flag);
    b.get(r, root, {space::recv, offset}, remote({space::send, offset}), bytes);
    b.fence(r);
    b.signal(r, root, flag);
  }
  for (const int r : others_than(b, root, {}).ranks) b.wait(root, r, flag);
}

void broadcast_part(builder& b, const recipe& r, std::uint64_t offset, std::uint64_t bytes,
                    std::uint64_t flag) {
  const int root = b.what().root;
  if (r.algorithm == "scatter_allgather") return scatter_allgather(b, r, offset, bytes);
  if (r.algorithm == "one_shot") return peer_broadcast(b, offset, bytes, flag);
  team t = all_ranks(b, {space::recv, offset});
  t.base[static_cast<std::size_t>(root)] = {space::send, offset};
  if (r.algorithm == "chain") return chain_broadcast(b, t, root, bytes, r.segments);
  if (r.algorithm == "bine")
    return tree_broadcast(b, in_order(t, bine_order(b.ranks(), root)), 0, bytes, 2);
  tree_broadcast(b, t, root, bytes, r.radices[0]);
}

// The ranks by how far they come after the root.
std::vector<int> order_from(const builder& b) {
  std::vector<int> order;
  for (int k = 0; k < b.ranks(); ++k) order.push_back((b.what().root + k) % b.ranks());
  return order;
}

// Where each rank adds up: the root in recv, the others in scratch, a leaf not at all. `order`:
// ranks by their positions in the tree.
team accumulators(builder& b, std::uint64_t offset, std::uint64_t bytes, bool leaves_too, int radix,
                  const std::vector<int>& order) {
  const int root = b.what().root, n = b.ranks();
  team t = all_ranks(b, {space::recv, offset});
  t.from.assign(t.ranks.size(), {space::send, offset});
  for (int position = 0; position < n; ++position) {
    const int r = order[static_cast<std::size_t>(position)];
    const bool leaf =
        radix > 0 ? tree_node_of(position, n, radix).children.empty() : position == n - 1;
    auto& base = t.base[static_cast<std::size_t>(r)];
    if (r != root && leaf && !leaves_too)
      base = {space::send, offset};
    else if (r != root)
      base = b.scratch(r, bytes);
  }
  // In place, the root's input lies where it adds up.
  if (b.in_place()) {
    const auto self = static_cast<std::size_t>(root);
    b.copy(root, t.base[self], t.from[self], bytes);
    t.from[self] = t.base[self];
  }
  return t;
}

// Reduce-scatter among all, then each sends its chunk to the root.
void scatter_gather(builder& b, const recipe& r, std::uint64_t offset, std::uint64_t bytes) {
  const int root = b.what().root;
  const ends cuts = cut_evenly(bytes, b.element(), b.ranks());
  std::vector<address> out;
  team t = all_ranks(b, {space::send, offset});
  if (r.inner == "exchange" || r.inner == "cyclic") {
    t = accumulators(b, offset, bytes, true, 2, order_from(b));
    out = own_chunks(t, cuts);
    if (r.inner == "cyclic") {
      cyclic_reduce_scatter(b, t, cuts, {2}, r.ports);
    } else {
      exchange_reduce_scatter(b, t, cuts, factors_of(b.ranks(), 2), r.ports);
    }
  } else {
    for (std::size_t m = 0; m < t.ranks.size(); ++m)
      out.push_back(t.ranks[m] == root ? address{space::recv, offset + cuts[m]}
                                       : b.scratch(t.ranks[m], cuts[m + 1] - cuts[m]));
    if (r.inner == "direct") {
      direct_reduce_scatter(b, t, out, cuts, r.ports);
    } else {
      ring_reduce_scatter(b, t, out, cuts);
    }
  }
  for (std::size_t m = 0; m < out.size(); ++m) {
    const int rank = t.ranks[m];
    if (rank == root) continue;
    b.send(rank, root, out[m], cuts[m + 1] - cuts[m]);
    b.fence(rank);
    b.receive(root, rank, {space::recv, offset + cuts[m]}, cuts[m + 1] - cuts[m]);
  }
  b.fence(root);
}

// The root reads the memory of all ranks, in order of rank.
void peer_reduce(builder& b, std::uint64_t offset, std::uint64_t bytes, std::uint64_t flag) {
  const int root = b.what().root;
  const address out{space::recv, offset}, in{space::send, offset};
  for (int r = 0; r < b.ranks(); ++r) {
    const bool own = r == root;
    if (!own) {
      b.signal(r, root, flag);
      b.wait(root, r, flag);
    }
    if (r == 0) {
      b.copy(root, out, own ? in : remote(in), bytes, own ? -1 : r);
    } else {
      b.reduce(root, out, own ? in : remote(in), bytes, own ? -1 : r);
    }
    if (own) continue;
    b.signal(root, r, flag);
    b.wait(r, root, flag);
  }
}

void reduce_part(builder& b, const recipe& r, std::uint64_t offset, std::uint64_t bytes,
                 std::uint64_t flag) {
  const int root = b.what().root;
  if (r.algorithm == "scatter_gather") return scatter_gather(b, r, offset, bytes);
  if (r.algorithm == "one_shot") return peer_reduce(b, offset, bytes, flag);
  if (r.algorithm == "chain")
    return chain_reduce(b, accumulators(b, offset, bytes, false, 0, order_from(b)), root, bytes,
                        r.segments);
  const int radix = r.radices[0];
  if (r.algorithm == "bine") {
    const std::vector<int> order = bine_order(b.ranks(), root);
    const team t = accumulators(b, offset, bytes, false, radix, order);
    return tree_reduce(b, in_order(t, order), 0, bytes, radix);
  }
  tree_reduce(b, accumulators(b, offset, bytes, false, radix, order_from(b)), root, bytes, radix);
}

template <class Part>
void in_channels(builder& b, const recipe& r, std::uint64_t bytes, const Part& part) {
  const ends cuts = cut_evenly(bytes, b.element(), r.pipeline);
  for (int c = 0; c < r.pipeline; ++c) {
    const auto i = static_cast<std::size_t>(c);
    if (cuts[i] == cuts[i + 1]) break;
    b.set_channel(c);
    part(b, r, cuts[i], cuts[i + 1] - cuts[i], i);
  }
}

// ---- gather and scatter: blocks of each rank, by distance from the root

// Blocks in the order of positions, as they lie in staging memory.
struct staged {
  const builder& b;
  bool gather;

  int rank(int position) const { return (position + b.what().root) % b.ranks(); }
  extent block(int position) const {
    const int root = b.what().root;
    return gather ? output_block(b.what(), root, rank(position))
                  : input_block(b.what(), root, rank(position));
  }
  std::uint64_t length(int first, int count) const {
    std::uint64_t sum = 0;
    for (int p = first; p < first + count; ++p) sum += block(p).bytes;
    return sum;
  }
  // Whether these blocks follow each other in the root's buffer.
  bool contiguous(int first, int count) const {
    std::uint64_t end = block(first).offset;
    for (int p = first; p < first + count; ++p) {
      if (block(p).bytes > 0 && block(p).offset != end) return false;
      end += block(p).bytes;
    }
    return true;
  }
};

void direct_gather(builder& b) {
  const staged blocks{b, true};
  const int root = b.what().root;
  for (int p = 0; p < b.ranks(); ++p) {
    const int rank = blocks.rank(p);
    const extent e = blocks.block(p);
    if (rank == root) {
      b.copy(root, {space::recv, e.offset}, {space::send, 0}, e.bytes);
      continue;
    }
    b.send(rank, root, {space::send, 0}, e.bytes);
    b.fence(rank);
    b.receive(root, rank, {space::recv, e.offset}, e.bytes);
  }
  b.fence(root);
}

void direct_scatter(builder& b) {
  const staged blocks{b, false};
  const int root = b.what().root;
  for (int p = 0; p < b.ranks(); ++p) {
    const int rank = blocks.rank(p);
    const extent e = blocks.block(p);
    if (rank == root) {
      b.copy(root, {space::recv, 0}, {space::send, e.offset}, e.bytes);
      continue;
    }
    b.send(root, rank, {space::send, e.offset}, e.bytes);
    b.receive(rank, root, {space::recv, 0}, e.bytes);
    b.fence(rank);
  }
  b.fence(root);
}

// The root's side of a subtree: the buffer itself where blocks follow each other, else staging.
struct root_side {
  tree_child child;
  address at;
  bool staging;
};

std::vector<root_side> root_sides(builder& b, const staged& blocks, const tree_node& node,
                                  space buffer) {
  std::vector<root_side> sides;
  for (const tree_child& c : node.children) {
    const bool whole = blocks.contiguous(c.position, c.count);
    const address at = whole ? address{buffer, blocks.block(c.position).offset}
                             : b.scratch(blocks.rank(0), blocks.length(c.position, c.count));
    sides.push_back({c, at, !whole});
  }
  return sides;
}

// Copies a staged subtree block by block between staging and the root's buffer.
void unstage(builder& b, const staged& blocks, const root_side& side, space buffer) {
  address from = side.at;
  for (int p = side.child.position; p < side.child.position + side.child.count; ++p) {
    const extent e = blocks.block(p);
    const address to{buffer, e.offset};
    if (blocks.gather) {
      b.copy(blocks.rank(0), to, from, e.bytes);
    } else {
      b.copy(blocks.rank(0), from, to, e.bytes);
    }
    from = from + e.bytes;
  }
}

void tree_gather(builder& b, int radix) {
  const staged blocks{b, true};
  for (int p = 0; p < b.ranks(); ++p) {
    const tree_node node = tree_node_of(p, b.ranks(), radix);
    const int rank = blocks.rank(p);
    const address own{space::send, 0};
    if (p == 0) {
      const auto sides = root_sides(b, blocks, node, space::recv);
      for (const root_side& s : sides)
        b.receive(rank, blocks.rank(s.child.position), s.at,
                  blocks.length(s.child.position, s.child.count));
      b.copy(rank, {space::recv, blocks.block(0).offset}, own, blocks.block(0).bytes);
      b.fence(rank);
      for (const root_side& s : sides)
        if (s.staging) unstage(b, blocks, s, space::recv);
      continue;
    }
    const bool leaf = node.children.empty();
    const address base = leaf ? own : b.scratch(rank, blocks.length(p, node.count));
    for (const tree_child& c : node.children)
      b.receive(rank, blocks.rank(c.position), base + blocks.length(p, c.position - p),
                blocks.length(c.position, c.count));
    if (!leaf) b.copy(rank, base, own, blocks.block(p).bytes);
    b.fence(rank);
    b.send(rank, blocks.rank(node.parent), base, blocks.length(p, node.count));
    b.fence(rank);
  }
}

void tree_scatter(builder& b, int radix) {
  const staged blocks{b, false};
  for (int p = 0; p < b.ranks(); ++p) {
    const tree_node node = tree_node_of(p, b.ranks(), radix);
    const int rank = blocks.rank(p);
    const address own{space::recv, 0};
    if (p == 0) {
      auto sides = root_sides(b, blocks, node, space::send);
      for (std::size_t k = sides.size(); k-- > 0;) {
        const root_side& s = sides[k];
        if (s.staging) unstage(b, blocks, s, space::send);
        b.send(rank, blocks.rank(s.child.position), s.at,
               blocks.length(s.child.position, s.child.count));
      }
      b.copy(rank, own, {space::send, blocks.block(0).offset}, blocks.block(0).bytes);
      b.fence(rank);
      continue;
    }
    const bool leaf = node.children.empty();
    const address base = leaf ? own : b.scratch(rank, blocks.length(p, node.count));
    b.receive(rank, blocks.rank(node.parent), base, blocks.length(p, node.count));
    b.fence(rank);
    for (std::size_t c = node.children.size(); c-- > 0;)
      b.send(rank, blocks.rank(node.children[c].position),
             base + blocks.length(p, node.children[c].position - p),
             blocks.length(node.children[c].position, node.children[c].count));
    if (!leaf) b.copy(rank, own, base, blocks.block(p).bytes);
    b.fence(rank);
  }
}

// The root reads (gather), or all others read from the root (scatter).
void peer_blocks(builder& b, bool gather) {
  const staged blocks{b, gather};
  const int root = b.what().root;
  for (int p = 0; p < b.ranks(); ++p) {
    const int rank = blocks.rank(p);
    const extent e = blocks.block(p);
    const address at_root{gather ? space::recv : space::send, e.offset};
    const address own{gather ? space::send : space::recv, 0};
    if (rank == root) {
      b.copy(root, gather ? at_root : own, gather ? own : at_root, e.bytes);
      continue;
    }
    const int reader = gather ? root : rank, owner = gather ? rank : root;
    b.signal(owner, reader, 0);
    b.wait(reader, owner, 0);
    b.get(reader, owner, gather ? at_root : own, remote(gather ? own : at_root), e.bytes);
    b.fence(reader);
    b.signal(reader, owner, 0);
    if (owner == rank) b.wait(owner, reader, 0);
  }
  for (int p = 1; !gather && p < b.ranks(); ++p) b.wait(root, blocks.rank(p), 0);
}

}  // namespace

void build_broadcast(builder& b, const recipe& r) {
  in_channels(b, r, output_block(b.what(), b.what().root == 0 ? b.ranks() - 1 : 0, 0).bytes,
              broadcast_part);
}

void build_reduce(builder& b, const recipe& r) {
  in_channels(b, r, input_block(b.what(), 0, 0).bytes, reduce_part);
}

void build_gather(builder& b, const recipe& r) {
  if (r.algorithm == "one_shot") return peer_blocks(b, true);
  if (r.algorithm == "direct") return direct_gather(b);
  tree_gather(b, r.radices[0]);
}

void build_scatter(builder& b, const recipe& r) {
  if (r.algorithm == "one_shot") return peer_blocks(b, false);
  if (r.algorithm == "direct") return direct_scatter(b);
  tree_scatter(b, r.radices[0]);
}

}  // namespace sucl::plan
