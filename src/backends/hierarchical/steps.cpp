// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/hierarchical/steps.hpp"

#include <algorithm>

namespace sucl::core {
namespace {

using area = step_memory::area;

// Writes down the steps of this rank.
struct planner {
  const sucl_operation& o;
  const hierarchical_map& w;
  int slices;
  int leaders;
  step_list list{};

  bool in_place() const { return (o.flags & SUCL_FLAG_IN_PLACE) != 0; }
  int ranks_on(int node) const { return w.ranks_on[static_cast<std::size_t>(node)]; }
  int ranks_here() const { return ranks_on(w.node); }
  bool at_root() const { return w.rank == o.root; }
  int root_node() const { return w.node_of[static_cast<std::size_t>(o.root)]; }
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

  hierarchical_step& add(level on, sucl_kind kind, std::uint64_t count, step_memory from,
                         step_memory to, int root = 0) {
    hierarchical_step& s = list.steps[list.size++];
    s = {on, kind, root, count, from, to};
    if (from == to && from.where != area::none) s.from = {}, s.in_place = true;
    return s;
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
  void list_slices() {
    list.counts.clear(), list.displs.clear();
    for (int l = 0; l < ranks_here(); ++l) {
      list.counts.push_back(count_of(l));
      list.displs.push_back(first_of(l));
    }
  }

  // Steps within the node on messages that are cut into slices.
  void reduce_to_slices(step_memory to) {
    if (even()) return void(add(level::node, SUCL_KIND_REDUCE_SCATTER_BLOCK, mine(), input(), to));
    list_slices();
    add(level::node, SUCL_KIND_REDUCE_SCATTER, 0, input(), to).uneven = true;
  }
  void share_slices(step_memory from) {
    const bool there = from == recv(first());
    auto& s = add(level::node, even() ? SUCL_KIND_ALLGATHER : SUCL_KIND_ALLGATHERV, mine(),
                  there ? nowhere() : from, recv());
    s.in_place = there;
    s.uneven = !even();
    if (s.uneven) list_slices();
  }
  void collect_slices(step_memory from) {
    auto& s = add(level::node, even() ? SUCL_KIND_GATHER : SUCL_KIND_GATHERV, mine(), from,
                  at_root() ? recv() : nowhere(), root_local());
    s.uneven = !even();
    if (s.uneven) list_slices();
  }

  void barrier() {
    if (!w.alone()) add(level::node, SUCL_KIND_BARRIER, 0, {}, {});
    if (w.local == 0) add(level::across, SUCL_KIND_BARRIER, 0, {}, {});
    if (!w.alone()) add(level::node, SUCL_KIND_BARRIER, 0, {}, {});
  }

  void allreduce() {
    if (slices > 1) return allreduce_slices();
    const bool leads = w.local == 0;
    if (!w.alone())
      add(level::node, SUCL_KIND_REDUCE, o.count, input(), leads ? recv() : nowhere());
    if (leads)
      add(level::across, SUCL_KIND_ALLREDUCE, o.count, w.alone() ? input() : recv(), recv());
    if (!w.alone())
      add(level::node, SUCL_KIND_BROADCAST, o.count, leads ? recv() : nowhere(),
          leads ? nowhere() : recv());
  }
  void allreduce_slices() {
    // In place the input is read until the first step is over.
    const step_memory slice = in_place() ? scratch(0, mine()) : recv(first());
    reduce_to_slices(slice);
    if (mine() > 0) add(level::across, SUCL_KIND_ALLREDUCE, mine(), slice, slice);
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
    if (!w.alone()) add(level::node, SUCL_KIND_REDUCE, o.count, input(), result, leader);
    if (leads)
      add(level::across, SUCL_KIND_REDUCE, o.count, w.alone() ? input() : result,
          by_root() ? result : nowhere(), root_node());
    if (!by_root() || leader == root_local()) return;
    list.counts.assign(static_cast<std::size_t>(ranks_here()), 0);
    list.displs.assign(static_cast<std::size_t>(ranks_here()), 0);
    list.counts[static_cast<std::size_t>(leader)] = o.count;
    add(level::node, SUCL_KIND_GATHERV, leads ? o.count : 0, result, at_root() ? recv() : nowhere(),
        root_local())
        .uneven = true;
  }
  void reduce_slices() {
    const step_memory slice = mine() > 0 ? scratch(0, mine()) : nowhere();
    reduce_to_slices(slice);
    if (mine() > 0)
      add(level::across, SUCL_KIND_REDUCE, mine(), slice, by_root() ? slice : nowhere(),
          root_node());
    if (by_root()) collect_slices(slice);
  }

  // The data at a rank that has all of it.
  step_memory whole(std::uint64_t at = 0) const {
    return at_root() && !in_place() ? send(at) : recv(at);
  }
  void broadcast_here(int from) {
    const bool has = w.local == from;
    add(level::node, SUCL_KIND_BROADCAST, o.count, has ? whole() : nowhere(),
        has ? nowhere() : recv(), from);
  }
  void broadcast() {
    const int leader = root_leader();
    // The root's own node first, unless the root can tell the others without its help.
    const bool ahead = slices > 1 || leader != root_local();
    if (ahead && by_root() && !w.alone()) broadcast_here(root_local());
    const bool leads = slices > 1 ? mine() > 0 : w.local == leader;
    const std::uint64_t at = slices > 1 ? first() : 0;
    if (leads)
      add(level::across, SUCL_KIND_BROADCAST, slices > 1 ? mine() : o.count,
          by_root() ? whole(at) : nowhere(), by_root() ? nowhere() : recv(at), root_node());
    if ((ahead && by_root()) || w.alone()) return;
    if (slices > 1) return share_slices(recv(first()));
    broadcast_here(leader);
  }

  // One entry a node: the blocks of its ranks.
  bool list_nodes() {
    const bool same =
        std::all_of(w.ranks_on.begin(), w.ranks_on.end(), [&](int n) { return n == ranks_here(); });
    for (std::size_t n = 0; !same && n < w.ranks_on.size(); ++n) {
      list.counts.push_back(o.count * static_cast<std::uint64_t>(w.ranks_on[n]));
      list.displs.push_back(o.count * static_cast<std::uint64_t>(w.first_on[n]));
    }
    return !same;
  }
  std::uint64_t all() const { return o.count * w.node_of.size(); }
  std::uint64_t of_node() const { return o.count * static_cast<std::uint64_t>(ranks_here()); }

  void allgather() {
    const bool leads = w.local == 0;
    const auto rank = static_cast<std::uint64_t>(w.rank);
    const step_memory block = recv(rank * o.count);
    if (!w.alone()) {
      auto& s = add(level::node, SUCL_KIND_GATHER, o.count, in_place() ? block : send(),
                    leads ? block : nowhere());
      s.in_place = in_place() && leads;
    }
    if (leads) {
      const bool uneven = list_nodes(), there = in_place() || !w.alone();
      auto& s = add(level::across, uneven ? SUCL_KIND_ALLGATHERV : SUCL_KIND_ALLGATHER, of_node(),
                    there ? nowhere() : send(), recv());
      s.in_place = there;
      s.uneven = uneven;
    }
    if (!w.alone())
      add(level::node, SUCL_KIND_BROADCAST, all(), leads ? recv() : nowhere(),
          leads ? nowhere() : recv());
  }

  void reduce_scatter_block() {
    const bool leads = w.local == 0;
    const step_memory sums = leads && !w.alone() ? scratch(0, all()) : nowhere();
    const step_memory blocks = leads && !w.alone() ? scratch(all(), of_node()) : recv();
    if (!w.alone()) add(level::node, SUCL_KIND_REDUCE, all(), input(), sums);
    if (leads) {
      const bool uneven = list_nodes();
      add(level::across, uneven ? SUCL_KIND_REDUCE_SCATTER : SUCL_KIND_REDUCE_SCATTER_BLOCK,
          uneven ? 0 : of_node(), w.alone() ? input() : sums, blocks)
          .uneven = uneven;
    }
    if (!w.alone())
      add(level::node, SUCL_KIND_SCATTER, o.count, leads ? blocks : nowhere(), recv());
  }
};

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
    // The blocks of a node have to lie together.
    case SUCL_KIND_ALLGATHER:
    case SUCL_KIND_REDUCE_SCATTER_BLOCK: return where.consecutive;
    default: return false;
  }
}

step_list steps_of(const sucl_operation& operation, const hierarchical_map& where, int slices,
                   int leaders) {
  planner p{operation, where, slices, leaders};
  if (operation.count == 0 && operation.kind != SUCL_KIND_BARRIER) return {};
  switch (operation.kind) {
    case SUCL_KIND_BARRIER: p.barrier(); break;
    case SUCL_KIND_BROADCAST: p.broadcast(); break;
    case SUCL_KIND_REDUCE: p.reduce(); break;
    case SUCL_KIND_ALLREDUCE: p.allreduce(); break;
    case SUCL_KIND_ALLGATHER: p.allgather(); break;
    default: p.reduce_scatter_block(); break;
  }
  return std::move(p.list);
}

}  // namespace sucl::core
