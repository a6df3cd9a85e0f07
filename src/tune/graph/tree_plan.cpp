// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/graph/tree_plan.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "plan/passes/passes.hpp"
#include "tune/graph/assemble.hpp"
#include "tune/graph/trees.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <tuple>

namespace sucl::tune {
namespace {

using plan::address;
using plan::space;

// Balanced trees may take the busiest link for so much longer than the least.
constexpr double balance_slack = 1.0001;

// Collectives each of whose blocks goes to one rank.
bool sends_blocks(kind k) { return k == kind::alltoall || k == kind::gather || k == kind::scatter; }

// Trees of a direction, with what they are made for.
struct half {
  sim::machine m;  // with the links as data flows from the roots
  std::unique_ptr<sim::paths> paths;
  wiring wires;
  std::map<std::tuple<tree_recipe::tree_type, int, double>, std::vector<tree>> trees;
  std::map<int, double> times;
};

}  // namespace

std::string to_text(const tree_recipe& r) {
  using tree_type = tree_recipe::tree_type;
  using order = tree_recipe::order;
  const std::string trees =
      r.trees == tree_type::balanced
          ? "number=" + std::to_string(r.number) + ";depth=" + base::print_short(r.depth, 6)
          : std::string(r.trees == tree_type::early ? "early=1" : "shallow=1");
  return "trees(" + trees + ";segments=" + std::to_string(r.segments) +
         (r.by == order::pairs    ? ";pairs=1"
          : r.by == order::strict ? ";strict=1"
                                  : "") +
         ")";
}

bool takes_trees(const plan::problem& p, const sim::machine& m) {
  const bool kinds = p.kind == kind::broadcast || p.kind == kind::reduce ||
                     p.kind == kind::allgather || p.kind == kind::reduce_scatter_block ||
                     p.kind == kind::allreduce || sends_blocks(p.kind);
  return kinds && !m.wires.empty() && p.ranks > 1 &&
         (p.order == plan::ordering::any || p.order == plan::ordering::free);
}

struct tree_planner::state {
  plan::problem what;
  plan::problem apart;  // not in place
  std::unique_ptr<half> out, in;
  std::vector<std::uint64_t> offsets;  // of each root's data, in the whole
  roots tree_roots;                    // 1 for each root
  std::vector<hop> blocks;             // where each one comes from and goes to

  bool rooted_vector() const { return what.kind == kind::broadcast || what.kind == kind::reduce; }
  std::uint64_t bytes_of(int root) const { return offsets[index(root) + 1] - offsets[index(root)]; }

  state(const plan::problem& p, const sim::machine& m) : what(p), apart(p) {
    apart.in_place = false;
    const bool reduces =
        p.kind == kind::reduce || p.kind == kind::reduce_scatter_block || p.kind == kind::allreduce;
    const bool spreads = !reduces || p.kind == kind::allreduce;
    tree_roots.assign(index(p.ranks), rooted_vector() ? 0 : 1);
    tree_roots[index(p.root)] = 1;
    if (sends_blocks(p.kind)) find_blocks();
    if (spreads) out = make_half(m, false);
    if (reduces) in = make_half(m, true);
    const std::uint64_t bytes = p.counts.at(0) * p.element_bytes;
    offsets.assign(index(p.ranks) + 1, 0);
    if (rooted_vector()) {
      for (int r = p.root; r < p.ranks; ++r) offsets[index(r) + 1] = bytes;
    } else if (p.kind == kind::allreduce) {
      offsets = plan::cut_evenly(bytes, p.element_bytes, p.ranks);
    } else {
      for (int r = 0; r < p.ranks; ++r) offsets[index(r) + 1] = offsets[index(r)] + bytes;
    }
  }

  void find_blocks() {
    const auto add = [&](int from, int to) {
      if (from != to) blocks.push_back({from, to});
    };
    // First those to the next rank, so that ranks take turns.
    for (int shift = 1; shift < what.ranks; ++shift) {
      if (what.kind == kind::scatter) add(what.root, (what.root + shift) % what.ranks);
      if (what.kind == kind::gather) add((what.root + shift) % what.ranks, what.root);
      if (what.kind == kind::alltoall)
        for (int r = 0; r < what.ranks; ++r) add(r, (r + shift) % what.ranks);
    }
  }
  bool paths() const { return !blocks.empty(); }

  std::unique_ptr<half> make_half(const sim::machine& m, bool reversed) const {
    auto h = std::make_unique<half>();
    h->m = m;
    if (reversed)
      for (sim::link& l : h->m.wires.links) std::swap(l.from, l.to);
    h->paths = std::make_unique<sim::paths>(h->m);
    h->wires = wiring_of(h->m, what.ranks);
    constexpr int max_nodes = 512;
    if (h->wires.nodes > max_nodes)
      base::fail(errc::invalid_argument,
                 "the graph of " + m.name + " has " + std::to_string(h->wires.nodes) + " nodes",
                 "Trees are packed in graphs of at most " + std::to_string(max_nodes) +
                     " nodes; describe larger machines by levels.");
    const cut limit = tightest_cut(h->wires, tree_roots);
    if (limit.units == 0)
      base::fail(errc::invalid_argument,
                 "in the graph of " + m.name + " no links lead from some of the " +
                     std::to_string(what.ranks) + " ranks to others",
                 "Add what joins them to the description.");
    return h;
  }

  roots wanted(int trees) const {
    roots all = tree_roots;
    for (auto& r : all) r *= trees;
    return all;
  }

  double time_of(half& h, int trees) const {
    const auto [known, fresh] = h.times.try_emplace(trees, 0);
    if (fresh) known->second = min_time(h.wires, wanted(trees));
    return known->second;
  }

  // Routes, and how long links take for so many bytes.
  route_table routes_of(half& h, double bytes) const {
    route_table t;
    t.ranks = what.ranks;
    for (int a = 0; a < what.ranks; ++a)
      for (int b = 0; b < what.ranks; ++b) {
        const sim::path* w = a == b ? nullptr : h.paths->between(a, b);
        t.all.push_back(w == nullptr ? route{} : route{w->links, w->latency});
      }
    for (const sim::link& l : h.m.wires.links) t.seconds.push_back(bytes / l.bandwidth);
    return t;
  }

  const std::vector<tree>& trees_of(half& h, const tree_recipe& r) const {
    using tree_type = tree_recipe::tree_type;
    const bool balanced = r.trees == tree_type::balanced;
    if (paths()) return paths_of(h, r);
    const auto [known, fresh] =
        h.trees.try_emplace({r.trees, balanced ? r.number : 1, balanced ? r.depth : 0});
    if (fresh && balanced)
      known->second = balanced_trees(routes_of(h, 1), wanted(r.number),
                                     time_of(h, r.number) * balance_slack, r.depth);
    else if (fresh)
      known->second = early_trees(routes_of(h, static_cast<double>(bytes_of(what.root))),
                                  tree_roots, r.trees == tree_type::early);
    return known->second;
  }

  const std::vector<tree>& paths_of(half& h, const tree_recipe& r) const {
    const bool balanced = r.trees == tree_recipe::tree_type::balanced;
    const auto [known, fresh] =
        h.trees.try_emplace({r.trees, balanced ? r.number : 1, balanced ? r.depth : 0});
    if (fresh && balanced)
      known->second = balanced_paths(routes_of(h, 1), blocks, r.number, r.depth);
    else if (fresh)
      known->second = shortest_paths(routes_of(h, static_cast<double>(block_bytes())), blocks);
    return known->second;
  }

  std::uint64_t block_bytes() const { return what.counts.at(0) * what.element_bytes; }
  // What a tree carries when there is one for each root or block.
  std::uint64_t tree_bytes() const { return paths() ? block_bytes() : bytes_of(what.root); }

  std::vector<parcel> parcels_of_paths(const std::vector<tree>& trees, const tree_recipe& r) const {
    const auto number = trees.size() / blocks.size();
    const std::vector<std::uint64_t> ends =
        plan::cut_evenly(block_bytes(), what.element_bytes, static_cast<int>(number) * r.segments);
    std::vector<parcel> all;
    for (std::size_t s = 0; s < index(r.segments); ++s)
      for (std::uint32_t t = 0; t < trees.size(); ++t) {
        const std::size_t part = t / blocks.size() * index(r.segments) + s;
        if (ends[part + 1] > ends[part])
          all.push_back({t, ends[part], ends[part + 1] - ends[part], 0});
      }
    return all;
  }

  std::vector<parcel> parcels_of(const std::vector<tree>& trees, const tree_recipe& r) const {
    if (paths()) return parcels_of_paths(trees, r);
    const int number = r.trees == tree_recipe::tree_type::balanced ? r.number : 1;
    std::vector<int> before(index(what.ranks));  // trees of each root
    std::vector<std::size_t> first;              // part of its root's data, by tree
    std::vector<std::vector<std::uint64_t>> ends(index(what.ranks));
    for (const tree& t : trees) {
      auto& end = ends[index(t.root)];
      if (end.empty())
        end = plan::cut_evenly(bytes_of(t.root), what.element_bytes, number * r.segments);
      first.push_back(index(before[index(t.root)]++ * r.segments));
    }
    std::vector<parcel> all;
    for (std::size_t s = 0; s < index(r.segments); ++s)
      for (std::uint32_t t = 0; t < trees.size(); ++t) {
        const auto& end = ends[index(trees[t].root)];
        const std::size_t part = first[t] + s;
        if (end[part + 1] > end[part]) all.push_back({t, end[part], end[part + 1] - end[part], 0});
      }
    return all;
  }

  // What a plan is made of.
  struct made {
    const std::vector<tree>*in_trees = nullptr, *out_trees = nullptr;
    std::vector<parcel> in_parcels, out_parcels;
    timetable in, out;
    double end = 0;
  };
  std::deque<std::pair<tree_recipe, made>> m_times;

  // Kept for each order of links.
  const made& times(tree_recipe r) {
    r.by = tree_recipe::order::strict;
    for (const auto& [known, seconds] : m_times)
      if (known == r) return seconds;
    return m_times.emplace_back(r, find_times(r)).second;
  }

  made find_times(const tree_recipe& r) {
    made all;
    std::vector<double> busy;
    double gathered = 0;
    if (in) {
      all.in_trees = &trees_of(*in, r);
      all.in_parcels = parcels_of(*all.in_trees, r);
      all.in = schedule_trees(in->m, *in->paths, *all.in_trees, all.in_parcels, busy);
      for (const transfer& t : all.in) gathered = std::max(gathered, t.end);
      all.end = gathered;
    }
    if (out) {
      all.out_trees = &trees_of(*out, r);
      all.out_parcels = parcels_of(*all.out_trees, r);
      busy.clear();
      if (in) follow(all, gathered);
      all.out = schedule_trees(out->m, *out->paths, *all.out_trees, all.out_parcels, busy);
      for (const transfer& t : all.out) all.end = std::max(all.end, t.end);
    }
    return all;
  }

  // Parcels that are reduced before they are spread: when the root has them. Backwards in time the
  // last hop is the first one.
  static void follow(made& all, double gathered) {
    std::map<std::pair<int, std::uint64_t>, double> first;  // by root and offset
    std::vector<double> earliest(all.in_parcels.size(), gathered);
    for (const transfer& t : all.in) earliest[t.parcel] = std::min(earliest[t.parcel], t.start);
    for (parcel& p : all.out_parcels) {
      const int root = (*all.out_trees)[p.tree].root;
      for (std::size_t i = 0; i < all.in_parcels.size(); ++i) {
        const parcel& other = all.in_parcels[i];
        if ((*all.in_trees)[other.tree].root == root && other.offset < p.offset + p.bytes &&
            p.offset < other.offset + other.bytes)
          p.ready = std::max(p.ready, gathered - earliest[i]);
      }
    }
  }

  // Where a block is among all that a rank sends or receives.
  std::uint64_t sent_at(int to) const {
    return what.kind == kind::gather ? 0 : index(to) * block_bytes();
  }
  std::uint64_t received_at(int from) const {
    return what.kind == kind::scatter ? 0 : index(from) * block_bytes();
  }

  void route_blocks(assembly& a, plan::builder& b, const made& all) const {
    std::map<std::tuple<std::uint32_t, std::uint64_t, int>, address>
        passing;  // by path, offset, rank
    a.spread(*all.out_trees, all.out_parcels, all.out, [&](const parcel& p, int root, int rank) {
      const int to = (*all.out_trees)[p.tree].hops.back().to;
      if (rank == root) return address{space::send, sent_at(to) + p.offset};
      if (rank == to) return address{space::recv, received_at(root) + p.offset};
      const auto [known, fresh] = passing.try_emplace({p.tree, p.offset, rank});
      if (fresh) known->second = b.scratch(rank, p.bytes);
      return known->second;
    });
    for (int r = 0; r < what.ranks; ++r)
      if (what.kind == kind::alltoall || r == what.root)
        a.keep(r, {space::recv, received_at(r)}, {space::send, sent_at(r)}, block_bytes());
  }

  plan::schedule make(const tree_recipe& r) {
    const made& all = times(r);
    plan::builder b(apart);
    assembly a(b, r.by == tree_recipe::order::pairs, r.by == tree_recipe::order::strict);
    const auto in_whole = [&](const parcel& p, int root) {
      return offsets[index(root)] + p.offset;
    };
    if (in) {
      const bool block = what.kind == kind::reduce_scatter_block;
      a.gather(
          *all.in_trees, all.in_parcels, all.in,
          [&](const parcel& p, int root, int) { return address{space::send, in_whole(p, root)}; },
          [&](const parcel& p, int root, int) {
            return address{space::recv, block ? p.offset : in_whole(p, root)};
          });
    }
    if (out && paths()) {
      route_blocks(a, b, all);
    } else if (out) {
      const bool reduced = in != nullptr;
      const bool vector = what.kind == kind::broadcast;
      a.spread(*all.out_trees, all.out_parcels, all.out, [&](const parcel& p, int root, int rank) {
        if (rank == root && !reduced) return address{space::send, p.offset};
        return address{space::recv, vector ? p.offset : in_whole(p, root)};
      });
      if (!reduced && !vector)
        for (int r0 = 0; r0 < what.ranks; ++r0)
          a.keep(r0, {space::recv, offsets[index(r0)]}, {space::send, 0}, bytes_of(r0));
    }
    a.finish();
    plan::schedule s = b.finish(to_text(r));
    return what.in_place ? plan::make_in_place(std::move(s)) : s;
  }
};

tree_planner::tree_planner(const plan::problem& p, const sim::machine& m)
    : m_state(std::make_unique<state>(p, m)) {}
tree_planner::~tree_planner() = default;

double tree_planner::predicted_seconds(const tree_recipe& r) { return m_state->times(r).end; }

double tree_planner::messages(const tree_recipe& r) {
  const int number = r.trees == tree_recipe::tree_type::balanced ? r.number : 1;
  if (m_state->paths()) {
    double hops = 0;
    for (const tree& t : m_state->trees_of(*m_state->out, r))
      hops += static_cast<double>(t.hops.size());
    return hops * r.segments;
  }
  const int halves = (m_state->in ? 1 : 0) + (m_state->out ? 1 : 0);
  return tree_count() * number * r.segments * (m_state->what.ranks - 1) * halves;
}

bool tree_planner::long_messages(const tree_recipe& r) {
  const int number = r.trees == tree_recipe::tree_type::balanced ? r.number : 1;
  const double bytes =
      static_cast<double>(m_state->tree_bytes()) / number / static_cast<double>(r.segments);
  for (half* h : {m_state->in.get(), m_state->out.get()}) {
    if (!h) continue;
    const route_table routes = m_state->routes_of(*h, bytes);
    for (const route& one : routes.all) {
      if (one.links.size() < 2) continue;
      double seconds = 0;
      for (const std::uint32_t l : one.links) seconds = std::max(seconds, routes.seconds[l]);
      if (seconds < one.latency) return false;
    }
  }
  return true;
}

double tree_planner::busiest(const tree_recipe& r) {
  const int number = r.trees == tree_recipe::tree_type::balanced ? r.number : 1;
  const double bytes = static_cast<double>(m_state->tree_bytes()) / number;
  double most = 0;
  for (half* h : {m_state->in.get(), m_state->out.get()})
    if (h)
      most = std::max(most, busiest_link(m_state->routes_of(*h, bytes), m_state->trees_of(*h, r)));
  return most;
}

bool tree_planner::has_paths() const { return m_state->paths(); }

double tree_planner::tree_count() const {
  double roots = 0;
  for (const auto r : m_state->tree_roots) roots += static_cast<double>(r);
  return has_paths() ? static_cast<double>(m_state->blocks.size()) : roots;
}

double tree_planner::efficiency(int trees) {
  if (m_state->paths()) return 1;
  double worst = 1;
  for (half* h : {m_state->in.get(), m_state->out.get()}) {
    if (!h) continue;
    const cut limit = tightest_cut(h->wires, m_state->tree_roots);
    const double best = static_cast<double>(limit.units) / limit.bandwidth * trees;
    worst = std::min(worst, best / m_state->time_of(*h, trees));
  }
  return worst;
}

plan::schedule tree_planner::make(const tree_recipe& r) { return m_state->make(r); }

}  // namespace sucl::tune
