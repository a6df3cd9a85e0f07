// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/hierarchical/steps.hpp"

#include <algorithm>
#include <numeric>

namespace sucl::core {
namespace {

// The phases of an operation: what a node's ranks do before its data goes to other nodes, what the
// leaders of nodes do with each other, and what a node's ranks do with what has come.
constexpr int on_node_first = 0, between_nodes = 1, on_node_last = 2;

using area = step_memory::area;

constexpr int phases = 3;

// Writes down the steps of this rank.
struct planner {
  const sucl_operation& o;
  const hierarchical_map& w;
  int slices;
  int leaders;
  step_list list{};

  bool in_place() const { return (o.flags & SUCL_FLAG_IN_PLACE) != 0; }
  int ranks() const { return static_cast<int>(w.node_of.size()); }
  int node_of(int rank) const { return w.node_of[static_cast<std::size_t>(rank)]; }
  int ranks_on(int node) const { return w.ranks_on[static_cast<std::size_t>(node)]; }
  int ranks_here() const { return ranks_on(w.node); }
  bool is_here(int rank) const { return node_of(rank) == w.node; }
  bool at_root() const { return w.rank == o.root; }
  int root_node() const { return node_of(o.root); }
  int root_local() const { return w.local_of[static_cast<std::size_t>(o.root)]; }
  bool by_root() const { return w.node == root_node(); }
  // Of a message that is not cut: the root if it is a leader, which saves a step.
  int root_leader() const { return root_local() < leaders ? root_local() : 0; }

  static step_memory send(std::uint64_t at = 0) { return {area::send, at}; }
  static step_memory recv(std::uint64_t at = 0) { return {area::recv, at}; }
  static step_memory nowhere() { return {}; }
  step_memory scratch(std::uint64_t at, std::uint64_t elements) {
    list.scratch = std::max(list.scratch, at + elements);
    return {area::scratch, at};
  }
  step_memory input() const { return in_place() ? recv() : send(); }

  hierarchical_step& add(int phase, level on, sucl_kind kind, std::uint64_t count, step_memory from,
                         step_memory to, int root = 0) {
    hierarchical_step& s = list.steps.emplace_back();
    s.on = on, s.kind = kind, s.root = root, s.count = count, s.from = from, s.to = to;
    s.phase = phase;
    if (from == to && from.where != area::none) s.from = {}, s.in_place = true;
    return s;
  }
  std::ptrdiff_t keep(const std::vector<std::uint64_t>& array) {
    const auto at = static_cast<std::ptrdiff_t>(list.numbers.size());
    list.numbers.insert(list.numbers.end(), array.begin(), array.end());
    return at;
  }

  // Leader l has slice l; the first ones have one element more.
  std::uint64_t count_of(int local) const {
    const auto k = static_cast<std::uint64_t>(slices), l = static_cast<std::uint64_t>(local);
    return l < k ? o.count / k + (l < o.count % k ? 1 : 0) : 0;
  }
  std::uint64_t first_of(int local) const {
    const auto k = static_cast<std::uint64_t>(slices);
    const auto l = std::min(static_cast<std::uint64_t>(local), k);
    return l * (o.count / k) + std::min(l, o.count % k);
  }
  std::uint64_t mine() const { return count_of(w.local); }
  std::uint64_t first() const { return first_of(w.local); }
  bool even() const {
    return slices == ranks_here() && o.count % static_cast<std::uint64_t>(slices) == 0;
  }
  step_arrays keep_slices() {
    std::vector<std::uint64_t> counts, displs;
    for (int l = 0; l < ranks_here(); ++l) {
      counts.push_back(count_of(l));
      displs.push_back(first_of(l));
    }
    return {keep(counts), keep(displs)};
  }

  // Steps within the node on messages that are cut into slices.
  void reduce_to_slices(step_memory to) {
    if (even())
      return void(
          add(on_node_first, level::node, SUCL_KIND_REDUCE_SCATTER_BLOCK, mine(), input(), to));
    add(on_node_first, level::node, SUCL_KIND_REDUCE_SCATTER, 0, input(), to).recv = {
        keep_slices().counts};
  }
  void share_slices(step_memory from) {
    const bool there = from == recv(first());
    auto& s = add(on_node_last, level::node, even() ? SUCL_KIND_ALLGATHER : SUCL_KIND_ALLGATHERV,
                  mine(), there ? nowhere() : from, recv());
    s.in_place = there;
    if (!even()) s.recv = keep_slices();
  }
  void collect_slices(step_memory from) {
    auto& s = add(on_node_last, level::node, even() ? SUCL_KIND_GATHER : SUCL_KIND_GATHERV, mine(),
                  from, at_root() ? recv() : nowhere(), root_local());
    if (!even()) s.recv = keep_slices();
  }

  void barrier() {
    if (!w.alone()) add(on_node_first, level::node, SUCL_KIND_BARRIER, 0, {}, {});
    if (w.local == 0) add(between_nodes, level::across, SUCL_KIND_BARRIER, 0, {}, {});
    if (!w.alone()) add(on_node_last, level::node, SUCL_KIND_BARRIER, 0, {}, {});
  }

  void allreduce() {
    if (slices > 1) return allreduce_slices();
    const bool leads = w.local == 0;
    if (!w.alone())
      add(on_node_first, level::node, SUCL_KIND_REDUCE, o.count, input(),
          leads ? recv() : nowhere());
    if (leads)
      add(between_nodes, level::across, SUCL_KIND_ALLREDUCE, o.count, w.alone() ? input() : recv(),
          recv());
    if (!w.alone())
      add(on_node_last, level::node, SUCL_KIND_BROADCAST, o.count, leads ? recv() : nowhere(),
          leads ? nowhere() : recv());
  }
  void allreduce_slices() {
    // In place the input is read until the first step is over.
    const step_memory slice = in_place() ? scratch(0, mine()) : recv(first());
    reduce_to_slices(slice);
    if (mine() > 0) add(between_nodes, level::across, SUCL_KIND_ALLREDUCE, mine(), slice, slice);
    share_slices(slice);
  }

  void reduce() {
    if (slices > 1) return reduce_slices();
    const int leader = root_leader();
    const bool leads = w.local == leader;
    step_memory result = nowhere();
    if (at_root() && leads)
      result = recv();
    else if (leads && !w.alone())
      result = scratch(0, o.count);
    if (!w.alone())
      add(on_node_first, level::node, SUCL_KIND_REDUCE, o.count, input(), result, leader);
    if (leads)
      add(between_nodes, level::across, SUCL_KIND_REDUCE, o.count, w.alone() ? input() : result,
          by_root() ? result : nowhere(), root_node());
    if (!by_root() || leader == root_local()) return;
    std::vector<std::uint64_t> counts(static_cast<std::size_t>(ranks_here()), 0);
    const std::ptrdiff_t displs = keep(counts);
    counts[static_cast<std::size_t>(leader)] = o.count;
    add(on_node_last, level::node, SUCL_KIND_GATHERV, leads ? o.count : 0, result,
        at_root() ? recv() : nowhere(), root_local())
        .recv = {keep(counts), displs};
  }
  void reduce_slices() {
    const step_memory slice = mine() > 0 ? scratch(0, mine()) : nowhere();
    reduce_to_slices(slice);
    if (mine() > 0)
      add(between_nodes, level::across, SUCL_KIND_REDUCE, mine(), slice,
          by_root() ? slice : nowhere(), root_node());
    if (by_root()) collect_slices(slice);
  }

  // The data at a rank that has all of it.
  step_memory whole(std::uint64_t at = 0) const {
    return at_root() && !in_place() ? send(at) : recv(at);
  }
  void broadcast_here(int phase, int from) {
    const bool has = w.local == from;
    add(phase, level::node, SUCL_KIND_BROADCAST, o.count, has ? whole() : nowhere(),
        has ? nowhere() : recv(), from);
  }
  void broadcast() {
    const int leader = root_leader();
    // The root's own node first, unless the root is the leader that sends to the others.
    const bool ahead = slices > 1 || leader != root_local();
    if (ahead && by_root() && !w.alone()) broadcast_here(on_node_first, root_local());
    const bool leads = slices > 1 ? mine() > 0 : w.local == leader;
    const std::uint64_t at = slices > 1 ? first() : 0;
    if (leads)
      add(between_nodes, level::across, SUCL_KIND_BROADCAST, slices > 1 ? mine() : o.count,
          by_root() ? whole(at) : nowhere(), by_root() ? nowhere() : recv(at), root_node());
    if ((ahead && by_root()) || w.alone()) return;
    if (slices > 1) return share_slices(recv(first()));
    broadcast_here(on_node_last, leader);
  }

  // The blocks of an operation, by rank.
  struct blocks {
    std::vector<std::uint64_t> counts, displs;
  };
  blocks blocks_of(const std::uint64_t* counts, const std::uint64_t* displs) const {
    blocks b;
    std::uint64_t next = 0;
    for (int r = 0; r < ranks(); ++r) {
      b.counts.push_back(counts ? counts[r] : o.count);
      b.displs.push_back(displs ? displs[r] : next);
      next += b.counts.back();
    }
    return b;
  }
  static std::uint64_t sum(const std::vector<std::uint64_t>& of) {
    return std::accumulate(of.begin(), of.end(), std::uint64_t{0});
  }
  // The blocks of the ranks of this node, by local rank.
  blocks of_this_node(const blocks& all) const {
    blocks b;
    for (int r = 0; r < ranks(); ++r) {
      if (!is_here(r)) continue;
      b.counts.push_back(all.counts[static_cast<std::size_t>(r)]);
      b.displs.push_back(all.displs[static_cast<std::size_t>(r)]);
    }
    return b;
  }
  step_arrays keep(const blocks& b) { return {keep(b.counts), keep(b.displs)}; }

  // Where blocks lie as ranks follow each other, those of a node are one block.
  bool nodes_lie_together() const { return w.consecutive && o.kind == SUCL_KIND_ALLGATHER; }

  void allgather() {
    const blocks all = blocks_of(o.recv_counts, o.recv_displs);
    const bool leads = w.local == 0;
    if (!w.alone()) gather_here(all);
    if (leads) gather_nodes(all);
    if (w.alone()) return;
    // Each rank may have its own displacements.
    if (o.kind == SUCL_KIND_ALLGATHER) return share_block(sum(all.counts), 0);
    for (std::size_t r = 0; r < all.counts.size(); ++r) share_block(all.counts[r], all.displs[r]);
  }
  void gather_here(const blocks& all) {
    const auto me = static_cast<std::size_t>(w.rank);
    const bool leads = w.local == 0, together = nodes_lie_together();
    const step_memory block = recv(all.displs[me]);
    auto& s = add(on_node_first, level::node, together ? SUCL_KIND_GATHER : SUCL_KIND_GATHERV,
                  all.counts[me], in_place() ? block : send(), nowhere());
    if (!leads) return;
    s.to = together ? block : recv();
    if (in_place()) s.from = {}, s.in_place = true;
    if (!together) s.recv = keep(of_this_node(all));
  }
  void share_block(std::uint64_t count, std::uint64_t at) {
    const bool leads = w.local == 0;
    if (count > 0)
      add(on_node_last, level::node, SUCL_KIND_BROADCAST, count, leads ? recv(at) : nowhere(),
          leads ? nowhere() : recv(at));
  }
  // In round k each leader gives the k-th of the blocks that its node has together.
  void gather_nodes(const blocks& all) {
    const auto nodes = w.ranks_on.size();
    std::vector<std::size_t> rounds_of(nodes, 0);
    std::vector<blocks> rounds;
    int before = -1;
    for (int r = 0; r < ranks(); ++r) {
      const auto n = static_cast<std::size_t>(node_of(r));
      const auto i = static_cast<std::size_t>(r);
      const bool follows = nodes_lie_together() && before == node_of(r);
      if (!follows) ++rounds_of[n];
      if (rounds_of[n] > rounds.size())
        rounds.push_back(
            {std::vector<std::uint64_t>(nodes, 0), std::vector<std::uint64_t>(nodes, 0)});
      blocks& round = rounds[rounds_of[n] - 1];
      if (!follows) round.displs[n] = all.displs[i];
      round.counts[n] += all.counts[i];
      before = node_of(r);
    }
    for (const blocks& round : rounds) {
      if (sum(round.counts) == 0) continue;
      const auto n = static_cast<std::size_t>(w.node);
      const bool same = nodes_lie_together() &&
                        std::all_of(round.counts.begin(), round.counts.end(),
                                    [&](std::uint64_t c) { return c == round.counts[0]; });
      const bool there = in_place() || !w.alone() || round.counts[n] == 0;
      auto& s = add(between_nodes, level::across, same ? SUCL_KIND_ALLGATHER : SUCL_KIND_ALLGATHERV,
                    round.counts[n], there ? nowhere() : send(), recv());
      s.in_place = there;
      if (!same) s.recv = keep(round);
    }
  }

  // One entry a node.
  std::vector<std::uint64_t> by_node(const std::vector<std::uint64_t>& counts) const {
    std::vector<std::uint64_t> sums(w.ranks_on.size(), 0);
    for (int r = 0; r < ranks(); ++r)
      sums[static_cast<std::size_t>(node_of(r))] += counts[static_cast<std::size_t>(r)];
    return sums;
  }
  void reduce_scatter() {
    const blocks all = blocks_of(o.recv_counts, nullptr);
    const std::uint64_t total = sum(all.counts);
    const std::vector<std::uint64_t> sums = by_node(all.counts);
    const std::uint64_t own = sums[static_cast<std::size_t>(w.node)];
    const bool leads = w.local == 0, direct = w.alone() && w.consecutive;
    const step_memory combined = leads && !direct ? scratch(0, total) : nowhere();
    const step_memory result = leads && !w.alone() ? scratch(total, own) : recv();
    if (!direct) combine(all, combined);
    if (leads) {
      const bool same = std::all_of(sums.begin(), sums.end(), [&](auto n) { return n == sums[0]; });
      add(between_nodes, level::across,
          same ? SUCL_KIND_REDUCE_SCATTER_BLOCK : SUCL_KIND_REDUCE_SCATTER, same ? own : 0,
          direct ? input() : combined, result)
          .recv.counts = same ? step_arrays::none : keep(sums);
    }
    if (!w.alone()) scatter_here(of_this_node(all), leads ? result : nowhere());
  }
  void scatter_here(const blocks& here, step_memory from) {
    const bool even = o.kind == SUCL_KIND_REDUCE_SCATTER_BLOCK;
    auto& s = add(on_node_last, level::node, even ? SUCL_KIND_SCATTER : SUCL_KIND_SCATTERV,
                  here.counts[static_cast<std::size_t>(w.local)], from, recv());
    if (even || w.local != 0) return;
    std::vector<std::uint64_t> dense(here.counts.size(), 0);
    std::partial_sum(here.counts.begin(), here.counts.end() - 1, dense.begin() + 1);
    s.send = {keep(here.counts), keep(dense)};
  }
  // Reduces to the leader, where the blocks of each node come to lie together.
  void combine(const blocks& all, step_memory to) {
    if (w.consecutive)
      return void(add(on_node_first, level::node, SUCL_KIND_REDUCE, sum(all.counts), input(), to));
    std::uint64_t next = 0;
    for (std::size_t n = 0; n < w.ranks_on.size(); ++n)
      for (int r = 0; r < ranks(); ++r) {
        const auto i = static_cast<std::size_t>(r);
        if (node_of(r) != static_cast<int>(n) || all.counts[i] == 0) continue;
        step_memory from = input(), there = to;
        from.at += all.displs[i];
        if (there.where != area::none) there.at += next;
        add(on_node_first, level::node, SUCL_KIND_REDUCE, all.counts[i], from, there);
        next += all.counts[i];
      }
  }

  // Blocks that differ for each pair of ranks are exchanged within an island if both ranks are on
  // it, and the others among all ranks.
  void keep_pairs(const blocks& all, step_arrays& within, step_arrays& beyond) {
    blocks others = all;
    for (int r = 0; r < ranks() && !w.alone(); ++r)
      if (is_here(r)) others.counts[static_cast<std::size_t>(r)] = 0;
    if (!w.alone()) within = keep(of_this_node(all));
    beyond = keep(others);
  }

  void alltoall() {
    hierarchical_step here, far;
    here.kind = far.kind = SUCL_KIND_ALLTOALLV;
    far.on = level::whole;
    here.to = far.to = recv();
    here.in_place = far.in_place = in_place();
    if (!in_place()) {
      here.from = far.from = send();
      keep_pairs(blocks_of(o.send_counts, o.send_displs), here.send, far.send);
    }
    keep_pairs(blocks_of(o.recv_counts, o.recv_displs), here.recv, far.recv);
    if (!w.alone()) list.steps.push_back(here);
    list.steps.push_back(far);
  }

  // Gathers and scatters, of which `kind` is the form with counts.
  void rooted(sucl_kind kind) {
    const bool gathers = kind == SUCL_KIND_GATHERV, apart = by_root() && !w.alone();
    hierarchical_step here;
    here.kind = kind;
    here.root = root_local();
    here.count = o.count;
    here.from = gathers || at_root() ? send() : nowhere();
    here.to = gathers && !at_root() ? nowhere() : recv();
    if (in_place() && at_root()) here.from = {}, here.in_place = true;
    if (in_place() && !at_root() && gathers) here.from = recv();
    hierarchical_step far = here;
    far.on = level::whole;
    far.root = o.root;
    if (apart) far.count = 0;  // its block is in the other step
    if (at_root()) {
      const blocks all = gathers ? blocks_of(o.recv_counts, o.recv_displs)
                                 : blocks_of(o.send_counts, o.send_displs);
      keep_pairs(all, gathers ? here.recv : here.send, gathers ? far.recv : far.send);
    }
    if (apart) list.steps.push_back(here);
    list.steps.push_back(far);
  }

  void plan() {
    switch (o.kind) {
      case SUCL_KIND_BARRIER: return barrier();
      case SUCL_KIND_BROADCAST: return broadcast();
      case SUCL_KIND_REDUCE: return reduce();
      case SUCL_KIND_ALLREDUCE: return allreduce();
      case SUCL_KIND_ALLGATHER:
      case SUCL_KIND_ALLGATHERV: return allgather();
      case SUCL_KIND_ALLTOALL:
      case SUCL_KIND_ALLTOALLV: return alltoall();
      case SUCL_KIND_GATHER:
      case SUCL_KIND_GATHERV: return rooted(SUCL_KIND_GATHERV);
      case SUCL_KIND_SCATTER:
      case SUCL_KIND_SCATTERV: return rooted(SUCL_KIND_SCATTERV);
      default: return reduce_scatter();
    }
  }
};

bool moves_nothing(const sucl_operation& o, std::size_t ranks) {
  switch (o.kind) {
    case SUCL_KIND_BARRIER: return false;
    case SUCL_KIND_ALLGATHERV:
    case SUCL_KIND_REDUCE_SCATTER:
      if (!o.recv_counts) return false;  // an example of such operations
      return std::all_of(o.recv_counts, o.recv_counts + ranks, [](auto n) { return n == 0; });
    // Only some ranks know the counts of others.
    case SUCL_KIND_ALLTOALLV:
    case SUCL_KIND_GATHERV:
    case SUCL_KIND_SCATTERV: return false;
    default: return o.count == 0;
  }
}

bool has_pieces(sucl_kind kind) {
  return kind == SUCL_KIND_BROADCAST || kind == SUCL_KIND_REDUCE || kind == SUCL_KIND_ALLREDUCE;
}

void move_memory(step_memory& m, std::uint64_t elements, std::uint64_t scratch) {
  if (m.where != area::none) m.at += m.where == area::scratch ? scratch : elements;
}

// Pieces of a long message, one on each level at a time: piece k is in phase f of wave k + f.
step_list pipeline(const sucl_operation& o, const hierarchical_map& where, const step_division& how,
                   std::uint64_t pieces) {
  step_list all;
  std::uint64_t of_piece = 0;
  for (std::uint64_t k = 0; k < pieces; ++k) {
    const std::uint64_t first = o.count / pieces * k + std::min(k, o.count % pieces);
    sucl_operation part = o;
    part.count = o.count / pieces + (k < o.count % pieces ? 1 : 0);
    planner p{part, where, how.slices, how.leaders};
    p.plan();
    // The first piece is the longest, and as many are in flight as there are phases.
    if (k == 0) of_piece = p.list.scratch;
    const std::uint64_t slot = k % phases;
    all.scratch = std::max(all.scratch, of_piece * (slot + 1));
    const auto numbers = static_cast<std::ptrdiff_t>(all.numbers.size());
    all.numbers.insert(all.numbers.end(), p.list.numbers.begin(), p.list.numbers.end());
    for (hierarchical_step& s : p.list.steps) {
      for (step_memory* m : {&s.from, &s.to}) move_memory(*m, first, slot * of_piece);
      for (std::ptrdiff_t* a : {&s.send.counts, &s.send.displs, &s.recv.counts, &s.recv.displs})
        if (*a != step_arrays::none) *a += numbers;
      s.wave = static_cast<int>(k) + s.phase;
      all.steps.push_back(s);
    }
  }
  std::stable_sort(all.steps.begin(), all.steps.end(), [](const auto& a, const auto& b) {
    return a.wave != b.wave ? a.wave < b.wave : a.phase < b.phase;
  });
  return all;
}

}  // namespace

hierarchical_map map_nodes(const std::vector<int>& node_of, int rank) {
  hierarchical_map w;
  w.rank = rank;
  w.node_of = node_of;
  for (std::size_t r = 0; r < node_of.size(); ++r) {
    const auto n = static_cast<std::size_t>(node_of[r]);
    if (n >= w.ranks_on.size()) {
      w.ranks_on.resize(n + 1, 0);
      w.first_on.resize(n + 1, static_cast<int>(r));
    }
    w.consecutive = w.consecutive && (r == 0 || node_of[r] >= node_of[r - 1]);
    w.local_of.push_back(w.ranks_on[n]++);
  }
  w.node = node_of[static_cast<std::size_t>(rank)];
  w.local = w.local_of[static_cast<std::size_t>(rank)];
  w.max_leaders = *std::min_element(w.ranks_on.begin(), w.ranks_on.end());
  return w;
}

bool has_steps(sucl_kind kind, const hierarchical_map& where) noexcept {
  switch (kind) {
    case SUCL_KIND_BARRIER:
    case SUCL_KIND_BROADCAST:
    case SUCL_KIND_REDUCE:
    case SUCL_KIND_ALLREDUCE: return true;
    // The blocks of a node lie together, or alone.
    case SUCL_KIND_ALLGATHER:
    case SUCL_KIND_REDUCE_SCATTER_BLOCK: return where.consecutive || where.islands;
    case SUCL_KIND_ALLGATHERV:
    case SUCL_KIND_REDUCE_SCATTER:
    case SUCL_KIND_ALLTOALL:
    case SUCL_KIND_ALLTOALLV:
    case SUCL_KIND_GATHER:
    case SUCL_KIND_GATHERV:
    case SUCL_KIND_SCATTER:
    case SUCL_KIND_SCATTERV: return where.islands;
    default: return false;
  }
}

step_list steps_of(const sucl_operation& o, const hierarchical_map& where,
                   const step_division& how) {
  if (moves_nothing(o, where.node_of.size())) return {};
  const std::uint64_t pieces =
      has_pieces(o.kind) && how.piece > 0 ? (o.count + how.piece - 1) / how.piece : 1;
  return pipeline(o, where, how, pieces);
}

}  // namespace sucl::core
