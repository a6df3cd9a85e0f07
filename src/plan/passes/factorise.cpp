// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The passes that break primitives up along the machine: striping, ring, hierarchy.
#include "base/error.hpp"
#include "plan/compose/composition.hpp"

#include <algorithm>
#include <span>

namespace sucl::plan {
namespace {

using type = primitive::type;

// Steps that replace one step, in order; empty ones are dropped in the end.
class substeps {
 public:
  explicit substeps(std::size_t n) : m_steps(n) {}
  void add(std::size_t at, primitive p) {
    if (at >= m_steps.size()) m_steps.resize(at + 1);
    if (!p.leaves.empty()) m_steps[at].push_back(std::move(p));
  }
  void move_to(std::vector<step>& steps) {
    for (step& s : m_steps)
      if (!s.empty()) steps.push_back(std::move(s));
  }

 private:
  std::vector<step> m_steps;
};

primitive like(const primitive& p, endpoint root, std::vector<endpoint> leaves) {
  return {p.what, p.level, p.channel, root, std::move(leaves), p.bytes};
}

// A transfer from one rank to another.
primitive transfer(const primitive& p, endpoint from, endpoint to) {
  primitive q = like(p, from, {to});
  q.what = type::multicast;
  return q;
}

const endpoint* leaf_of(const primitive& p, int rank) {
  for (const endpoint& l : p.leaves)
    if (l.rank == rank) return &l;
  return nullptr;
}

endpoint shifted(endpoint e, std::uint64_t bytes) { return {e.rank, e.at + bytes}; }

// Takes the leaves that `rule` holds for out of a list.
template <class Rule>
std::vector<endpoint> take(std::vector<endpoint>& leaves, const Rule& rule) {
  std::vector<endpoint> taken;
  std::copy_if(leaves.begin(), leaves.end(), std::back_inserter(taken), rule);
  std::erase_if(leaves, rule);
  return taken;
}

// The rank of another group with the same index in it, or the last one of a smaller group.
int opposite(int rank, int in_group_of, int width, int ranks) {
  const int first = in_group_of / width * width;
  return std::min({first + rank % width, first + width - 1, ranks - 1});
}

// Where a multicast from `root` enters the group of these leaves, which is taken out of them: at
// the root's index, so that roots all over a group use all links between two groups. A rank that is
// no leaf gets scratch.
endpoint entrance(composition& c, const primitive& p, int root, std::span<endpoint>& leaves,
                  int width) {
  const int rank = opposite(root, leaves[0].rank, width, c.what.ranks);
  const auto own =
      std::find_if(leaves.begin(), leaves.end(), [&](const endpoint& l) { return l.rank == rank; });
  if (own == leaves.end()) return {rank, c.take_scratch(rank, p.bytes)};
  const endpoint entered = *own;
  std::move(own + 1, leaves.end(), own);
  leaves = leaves.first(leaves.size() - 1);
  return entered;
}

std::vector<endpoint> to_vector(std::span<const endpoint> list) {
  return {list.begin(), list.end()};
}

void check_group(int group) {
  if (group < 1)
    base::fail(errc::invalid_argument, "groups of " + std::to_string(group) + " ranks",
               "Give the number of ranks of a node.");
}

template <class Pass>
composition rewrite(composition c, const Pass& pass) {
  std::vector<step> steps;
  steps.swap(c.steps);
  for (const step& s : steps) {
    substeps made(1);
    for (const primitive& p : s) pass(c, p, made);
    made.move_to(c.steps);
  }
  if (c.steps.empty()) c.steps.emplace_back();
  return c;
}

// ---- striping: sub-steps 0 (to the rails), 1 (across) and 2 (from the rails)

void stripe_multicast(composition& c, const primitive& p, const std::vector<int>& rails,
                      const std::vector<std::uint64_t>& cuts, substeps& made) {
  if (const endpoint* own = leaf_of(p, p.root.rank)) made.add(0, transfer(p, p.root, *own));
  for (std::size_t k = 0; k < rails.size(); ++k) {
    primitive part = like(p, shifted(p.root, cuts[k]), {});
    part.bytes = cuts[k + 1] - cuts[k];
    if (part.bytes == 0) continue;
    for (const endpoint& l : p.leaves)
      if (l.rank != p.root.rank && l.rank != rails[k]) part.leaves.push_back(shifted(l, cuts[k]));
    if (rails[k] != p.root.rank) {
      const endpoint* leaf = leaf_of(p, rails[k]);
      const endpoint rail{rails[k],
                          leaf ? leaf->at + cuts[k] : c.take_scratch(rails[k], part.bytes)};
      made.add(0, transfer(part, part.root, rail));
      part.root = rail;
    }
    made.add(1, std::move(part));
  }
}

void stripe_reduction(composition& c, const primitive& p, const std::vector<int>& rails,
                      const std::vector<std::uint64_t>& cuts, substeps& made) {
  for (std::size_t k = 0; k < rails.size(); ++k) {
    primitive part = p;
    part.bytes = cuts[k + 1] - cuts[k];
    if (part.bytes == 0) continue;
    part.root = shifted(p.root, cuts[k]);
    for (endpoint& l : part.leaves) l = shifted(l, cuts[k]);
    if (rails[k] != p.root.rank) {
      const endpoint rail{rails[k], c.take_scratch(rails[k], part.bytes)};
      made.add(2, transfer(part, rail, part.root));
      part.root = rail;
    }
    made.add(1, std::move(part));
  }
}

// ---- ring

// The nodes that have leaves, without the root's, in order around the ring, with their leaves.
std::vector<std::vector<endpoint>> nodes_after(const primitive& p, int group, int ranks) {
  const int nodes = (ranks + group - 1) / group, local = p.root.rank / group;
  std::vector<std::vector<endpoint>> all(static_cast<std::size_t>(nodes));
  for (const endpoint& l : p.leaves)
    if (l.rank / group != local)
      all[static_cast<std::size_t>((l.rank / group - local + nodes) % nodes)].push_back(l);
  std::erase_if(all, [](const auto& leaves) { return leaves.empty(); });
  return all;
}

void ring_multicast(composition& c, const primitive& p, int group, substeps& made) {
  endpoint from = p.root;
  std::size_t hop = 0;
  for (auto& leaves : nodes_after(p, group, c.what.ranks)) {
    std::span<endpoint> others = leaves;
    const endpoint gate = entrance(c, p, p.root.rank, others, group);
    made.add(hop++, transfer(p, from, gate));
    made.add(hop, like(p, gate, to_vector(others)));
    from = gate;
  }
  std::vector<endpoint> local = p.leaves;
  made.add(0, like(p, p.root, take(local, [&](const endpoint& l) {
                     return l.rank / group == p.root.rank / group;
                   })));
}

void ring_reduction(composition& c, const primitive& p, int group, substeps& made) {
  auto nodes = nodes_after(p, group, c.what.ranks);
  std::vector<endpoint> local = p.leaves;
  local = take(local, [&](const endpoint& l) { return l.rank / group == p.root.rank / group; });
  endpoint sum;  // of the nodes so far
  std::size_t hop = 0;
  for (std::size_t n = nodes.size(); n-- > 0;) {
    const auto& leaves = nodes[n];
    const int rank = opposite(p.root.rank, leaves[0].rank, group, c.what.ranks);
    endpoint part = leaves[0];
    if (leaves.size() > 1 || part.rank != rank) {
      part = {rank, c.take_scratch(rank, p.bytes)};
      made.add(0, like(p, part, leaves));
    }
    if (n + 1 == nodes.size()) {
      sum = part;
      continue;
    }
    const endpoint both{rank, c.take_scratch(rank, p.bytes)};
    made.add(++hop, like(p, both, {part, sum}));
    sum = both;
  }
  if (nodes.empty() || local.empty()) {
    made.add(++hop, like(p, p.root, nodes.empty() ? local : std::vector<endpoint>{sum}));
    return;
  }
  endpoint part = local[0];
  if (local.size() > 1 || part.rank != p.root.rank) {
    part = p.root;
    made.add(0, like(p, part, local));
  }
  made.add(++hop, like(p, p.root, {part, sum}));
}

// ---- hierarchy

class tree_builder {
 public:
  tree_builder(composition& c, std::vector<int> widths, int first, substeps& made)
      : m_composition(c), m_widths(std::move(widths)), m_first(first), m_made(made) {}

  void multicast(const primitive& p) {
    std::vector<endpoint> leaves = sorted(p.leaves);
    for (const endpoint& own :
         take(leaves, [&](const endpoint& l) { return l.rank == p.root.rank; }))
      m_made.add(0, at_level(transfer(p, p.root, own), m_widths.size() - 1));
    spread(p, p.root, leaves, 0);
  }

  void reduction(const primitive& p) {
    std::vector<endpoint> leaves = sorted(p.leaves);
    gather(p, p.root, leaves, 0);
  }

 private:
  primitive at_level(primitive p, std::size_t depth) const {
    p.level = static_cast<std::uint8_t>(m_first + static_cast<int>(depth));
    return p;
  }

  static std::vector<endpoint> sorted(std::vector<endpoint> leaves) {
    const auto by_rank = [](const endpoint& a, const endpoint& b) { return a.rank < b.rank; };
    if (!std::is_sorted(leaves.begin(), leaves.end(), by_rank))
      std::stable_sort(leaves.begin(), leaves.end(), by_rank);
    return leaves;
  }

  // The sorted leaves of the first group, which are taken out of the others.
  static std::span<endpoint> next_group(std::span<endpoint>& leaves, int width) {
    std::size_t n = 1;
    while (n < leaves.size() && leaves[n].rank / width == leaves[0].rank / width) ++n;
    const std::span<endpoint> group = leaves.first(n);
    leaves = leaves.subspan(n);
    return group;
  }

  void spread(const primitive& p, endpoint root, std::span<endpoint> leaves, std::size_t depth) {
    if (leaves.empty()) return;
    const int width = m_widths[depth];
    std::vector<endpoint> entrances;
    while (!leaves.empty()) {
      std::span<endpoint> group = next_group(leaves, width);
      endpoint head = root;
      if (group[0].rank / width != root.rank / width) {
        head = entrance(m_composition, p, root.rank, group, width);
        entrances.push_back(head);
      }
      if (depth + 1 < m_widths.size()) spread(p, head, group, depth + 1);
    }
    m_made.add(depth, at_level(like(p, root, std::move(entrances)), depth));
  }

  void gather(const primitive& p, endpoint root, std::span<endpoint> leaves, std::size_t depth) {
    const int width = m_widths[depth];
    std::vector<endpoint> parts;
    while (!leaves.empty()) {
      const std::span<endpoint> group = next_group(leaves, width);
      const int rank = opposite(root.rank, group[0].rank, width, m_composition.what.ranks);
      if (group.size() == 1 && group[0].rank == rank) {
        parts.push_back(group[0]);
        continue;
      }
      endpoint sum = root;
      if (rank != root.rank) sum = {rank, m_composition.take_scratch(rank, p.bytes)};
      gather(p, sum, group, depth + 1);
      parts.push_back(sum);
    }
    // Nothing to do where the only part is the root's own sum.
    if (parts.size() == 1 && parts[0] == root) return;
    m_made.add(m_widths.size() - 1 - depth, at_level(like(p, root, std::move(parts)), depth));
  }

  composition& m_composition;
  std::vector<int> m_widths;  // ranks of a group of each level
  int m_first;
  substeps& m_made;
};

}  // namespace

composition stripe(composition c, int group, int parts) {
  check_group(group);
  if (parts < 1 || parts > group)
    base::fail(
        errc::invalid_argument,
        std::to_string(parts) + " stripes through nodes of " + std::to_string(group) + " ranks",
        "Give from 1 to as many as a node has ranks.");
  if (parts == 1) return c;
  return rewrite(std::move(c), [&](composition& out, const primitive& p, substeps& made) {
    const int node = p.root.rank / group, first = node * group;
    const int size = std::min(group, out.what.ranks - first);
    const bool leaves_node = std::any_of(p.leaves.begin(), p.leaves.end(),
                                         [&](const endpoint& l) { return l.rank / group != node; });
    if (!leaves_node) return made.add(1, p);
    std::vector<int> rails;
    for (int k = 0; k < std::min(parts, size); ++k)
      rails.push_back(first + (p.root.rank - first + k) % size);
    const auto cuts = cut_evenly(p.bytes, out.what.element_bytes, static_cast<int>(rails.size()));
    if (p.what == type::multicast) return stripe_multicast(out, p, rails, cuts, made);
    stripe_reduction(out, p, rails, cuts, made);
  });
}

composition ring(composition c, int group) {
  check_group(group);
  return rewrite(std::move(c), [&](composition& out, const primitive& p, substeps& made) {
    if (p.what == type::multicast) return ring_multicast(out, p, group, made);
    if (out.in_order) return made.add(0, p);
    ring_reduction(out, p, group, made);
  });
}

composition factorise(composition c, const std::vector<int>& factors, int first) {
  std::int64_t members = 1;
  std::vector<int> widths;
  for (std::size_t i = factors.size(); i-- > 0;) {
    widths.insert(widths.begin(), static_cast<int>(std::min<std::int64_t>(members, 1 << 30)));
    if (factors[i] < 1) members = 0;
    members = std::min<std::int64_t>(members * factors[i], std::int64_t{1} << 30);
  }
  if (members < c.what.ranks)
    base::fail(errc::invalid_argument,
               "a hierarchy of " + std::to_string(members) + " ranks for a composition of " +
                   std::to_string(c.what.ranks),
               "The product of the factors must be the number of ranks, or above it for groups of "
               "different sizes.");
  const auto needed = static_cast<std::size_t>(first) + factors.size();
  while (c.levels.size() < needed)
    c.levels.push_back({"level" + std::to_string(c.levels.size()), "any"});
  return rewrite(std::move(c), [&](composition& out, const primitive& p, substeps& made) {
    tree_builder tree(out, widths, first, made);
    if (p.what == type::multicast) return tree.multicast(p);
    tree.reduction(p);
  });
}

}  // namespace sucl::plan
