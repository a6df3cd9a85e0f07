// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/algorithms/collectives.hpp"

#include <algorithm>

namespace sucl::plan {

team all_ranks(const builder& b, address base) {
  team t;
  for (int r = 0; r < b.ranks(); ++r) {
    t.ranks.push_back(r);
    t.base.push_back(base);
  }
  return t;
}

team in_order(const team& t, const std::vector<int>& members) {
  team result;
  for (const int m : members) {
    const auto i = static_cast<std::size_t>(m);
    result.ranks.push_back(t.ranks[i]);
    result.base.push_back(t.base[i]);
    result.from.push_back(t.input(i));
  }
  return result;
}

namespace {

// One part of the vector, [offset, offset + bytes).
struct part {
  std::uint64_t offset, bytes;
  std::uint64_t flag;  // of this part's channel
};

// Every rank reads all inputs in order of rank.
void one_shot(builder& b, const part& p) {
  const team t = all_ranks(b, {space::recv, p.offset});
  peer_barrier(b, t, p.flag);
  for (int r = 0; r < b.ranks(); ++r) {
    const address out{space::recv, p.offset}, in{space::send, p.offset};
    for (int other = 0; other < b.ranks(); ++other) {
      const bool own = other == r;
      if (other == 0) {
        b.copy(r, out, own ? in : remote(in), p.bytes, own ? -1 : other);
      } else {
        b.reduce(r, out, own ? in : remote(in), p.bytes, own ? -1 : other);
      }
    }
  }
  peer_barrier(b, t, p.flag);
}

// Every rank reads its chunk of all inputs, then the results of all others.
void two_shot(builder& b, const part& p) {
  const team in = all_ranks(b, {space::send, p.offset});
  const team out = all_ranks(b, {space::recv, p.offset});
  const ends cuts = cut_evenly(p.bytes, b.element(), b.ranks());
  peer_reduce_scatter(b, in, own_chunks(out, cuts), cuts, p.flag);
  peer_allgather(b, out, cuts, p.flag);
}

// A group's part of a reduce-scatter in place, and its inverse. Only the first `leaders` members
// get a chunk.
void group_reduce_scatter(builder& b, const team& t, const ends& cuts, const recipe& r,
                          const std::string& pattern, std::uint64_t flag) {
  const auto radices = factors_of(t.size(), 2);
  if (pattern == "exchange") return exchange_reduce_scatter(b, t, cuts, radices, r.ports);
  if (pattern == "cyclic") return cyclic_reduce_scatter(b, t, cuts, {2}, r.ports);
  const team in{t.ranks, t.from.empty() ? t.base : t.from, {}};
  if (pattern == "ring") return ring_reduce_scatter(b, in, own_chunks(t, cuts), cuts);
  if (pattern == "peer") return peer_reduce_scatter(b, in, own_chunks(t, cuts), cuts, flag);
  direct_reduce_scatter(b, in, own_chunks(t, cuts), cuts, r.ports);
}

void group_allgather(builder& b, const team& t, const ends& cuts, const recipe& r,
                     const std::string& pattern, std::uint64_t flag) {
  const auto radices = factors_of(t.size(), 2);
  if (pattern == "ring") return ring_allgather(b, t, cuts);
  if (pattern == "peer") return peer_allgather(b, t, cuts, flag);
  if (pattern == "exchange") return exchange_allgather(b, t, cuts, radices, r.ports);
  if (pattern == "cyclic") return cyclic_allgather(b, t, cuts, {2}, r.ports);
  direct_allgather(b, t, cuts, r.ports);
}

}  // namespace

void team_allreduce(builder& b, const team& t, std::uint64_t bytes, const recipe& r,
                    const std::string& pattern, std::uint64_t flag) {
  if (t.size() == 1) return b.copy(t.ranks[0], t.base[0], t.input(0), bytes);
  if (pattern == "doubling")
    return exchange_allreduce(b, t, bytes, powers_below(t.size(), 2), 0, r.ports);
  if (pattern == "tree") {
    tree_reduce(b, t, 0, bytes, 2);
    return tree_broadcast(b, t, 0, bytes, 2);
  }
  const ends cuts = cut_evenly(bytes, b.element(), t.size());
  if (pattern == "cyclic") return cyclic_allreduce(b, t, cuts, {2}, r.ports);
  if (pattern == "exchange") {
    const auto radices = powers_below(t.size(), 2);
    return exchange_allreduce(b, t, bytes, radices, static_cast<int>(radices.size()), r.ports);
  }
  group_reduce_scatter(b, t, cuts, r, pattern, flag);
  group_allgather(b, t, cuts, r, pattern, flag);
}

namespace {

// Groups of the innermost level reduce and scatter to their leaders, the j-th leaders of all groups
// do the same one level up, and the groups gather.
void hierarchical(builder& b, const team& t, std::uint64_t bytes, const recipe& r,
                  std::size_t levels, std::uint64_t flag) {
  b.set_level(static_cast<int>(levels) - 1);
  if (levels == 1) return team_allreduce(b, t, bytes, r, r.outer, flag);
  const int width = r.hierarchy[levels - 1];
  std::vector<team> groups;
  for (int m = 0; m < t.size(); ++m) {
    if (m % width == 0) groups.emplace_back();
    groups.back().ranks.push_back(t.ranks[static_cast<std::size_t>(m)]);
    groups.back().base.push_back(t.base[static_cast<std::size_t>(m)]);
    groups.back().from.push_back(t.input(static_cast<std::size_t>(m)));
  }
  int leaders = groups.back().size();  // the last group is the smallest
  if (r.leaders > 0) leaders = std::min(leaders, r.leaders);
  const ends parts = cut_evenly(bytes, b.element(), leaders);
  const auto cuts_of = [&](const team& g) {
    ends cuts = parts;
    cuts.resize(static_cast<std::size_t>(g.size()) + 1, bytes);
    return cuts;
  };
  for (const team& g : groups) group_reduce_scatter(b, g, cuts_of(g), r, r.inner, flag);
  for (std::size_t j = 0; j < static_cast<std::size_t>(leaders); ++j) {
    team same;
    for (const team& g : groups) {
      same.ranks.push_back(g.ranks[j]);
      same.base.push_back(g.base[j] + parts[j]);
    }
    hierarchical(b, same, parts[j + 1] - parts[j], r, levels - 1, flag);
  }
  b.set_level(static_cast<int>(levels) - 1);
  for (const team& g : groups) group_allgather(b, g, cuts_of(g), r, r.inner, flag);
}

void allreduce_part(builder& b, const recipe& r, const part& p) {
  if (r.algorithm == "one_shot") return one_shot(b, p);
  if (r.algorithm == "two_shot") return two_shot(b, p);
  team t = all_ranks(b, {space::recv, p.offset});
  const ends cuts = cut_evenly(p.bytes, b.element(), b.ranks());
  if (r.algorithm == "ring" || r.algorithm == "direct") {
    const team in = all_ranks(b, {space::send, p.offset});
    if (r.algorithm == "ring") {
      ring_reduce_scatter(b, in, own_chunks(t, cuts), cuts);
      return ring_allgather(b, t, cuts);
    }
    direct_reduce_scatter(b, in, own_chunks(t, cuts), cuts, r.ports);
    return direct_allgather(b, t, cuts, r.ports);
  }
  take_input(b, t, {space::send, p.offset}, p.bytes);
  if (r.algorithm == "hierarchical")
    return hierarchical(b, t, p.bytes, r, r.hierarchy.size(), p.flag);
  if (r.algorithm == "exchange")
    return exchange_allreduce(b, t, p.bytes, r.radices, r.split, r.ports);
  if (r.algorithm == "doubling")
    return exchange_allreduce(b, t, p.bytes, powers_below(b.ranks(), r.radices[0]), 0, r.ports);
  if (r.algorithm == "peer_exchange") return peer_exchange(b, t, p.bytes, r.radices, p.flag);
  if (r.algorithm == "cyclic") return cyclic_allreduce(b, t, cuts, r.radices, r.ports);
  if (r.algorithm == "bine") t = in_order(t, bine_order(b.ranks(), 0));
  tree_reduce(b, t, 0, p.bytes, r.radices[0]);
  tree_broadcast(b, t, 0, p.bytes, r.radices[0]);
}

}  // namespace

void build_allreduce(builder& b, const recipe& r) {
  const std::uint64_t bytes = input_block(b.what(), 0, 0).bytes;
  const ends cuts = cut_evenly(bytes, b.element(), r.pipeline);
  for (int c = 0; c < r.pipeline; ++c) {
    const auto i = static_cast<std::size_t>(c);
    if (cuts[i] == cuts[i + 1]) break;
    b.set_channel(c);
    b.set_level(0);
    allreduce_part(b, r, {cuts[i], cuts[i + 1] - cuts[i], i});
  }
}

}  // namespace sucl::plan
