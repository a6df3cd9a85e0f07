// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/cost/bound.hpp"

#include "base/text.hpp"
#include "tune/graph/optimum.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace sucl::tune {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// Bytes that must leave and enter a side of a cut.
struct crossing {
  double out = 0;
  double in = 0;
};

// What must pass a side of `g` of the ranks, the root among them or not. Nothing where a kind has
// counts of its own.
crossing crossing_of(const plan::problem& p, double g, bool has_root) {
  const double n = static_cast<double>(p.counts.at(0)) * static_cast<double>(p.element_bytes);
  const double others = static_cast<double>(p.ranks) - g;
  if (others <= 0) return {};
  switch (p.kind) {
    case kind::broadcast: return has_root ? crossing{n, 0} : crossing{0, n};
    case kind::reduce: return has_root ? crossing{0, n} : crossing{n, 0};
    case kind::allreduce: return {n, n};
    case kind::allgather: return {g * n, others * n};
    case kind::reduce_scatter_block: return {others * n, g * n};
    case kind::alltoall: return {g * others * n, g * others * n};
    case kind::gather: return has_root ? crossing{0, others * n} : crossing{g * n, 0};
    case kind::scatter: return has_root ? crossing{others * n, 0} : crossing{0, g * n};
    default: return {};
  }
}

std::string amount(double bytes, double bandwidth) {
  const bool small = bytes < 1e6;
  return base::print_short(bytes / (small ? 1e3 : 1e6), 4) + (small ? " kB at " : " MB at ") +
         base::print_short(bandwidth / 1e9, 4) + " GB/s";
}

class bounder {
 public:
  bounder(const plan::problem& p, const sim::machine& m) : m_problem(p), m_machine(m) {}

  bound run() {
    if (m_problem.ranks < 2 || m_problem.counts.size() != 1 || bytes() == 0) return {};
    if (m_machine.wires.empty())
      by_levels();
    else
      by_graph();
    return m_best;
  }

 private:
  void offer(double bytes, double bandwidth, double latency, const std::string& what) {
    if (bytes <= 0 || bandwidth == infinite) return;
    offer(latency + bytes / bandwidth, what + ": " + amount(bytes, bandwidth));
  }
  void offer(double seconds, const std::string& why) {
    if (seconds <= m_best.seconds) return;
    m_best = {seconds, why};
  }

  // ---- levels

  static double of_transports(const sim::level& l) {
    double sum = 0;
    for (const sim::transport& t : l.transports) sum += t.bandwidth > 0 ? t.bandwidth : infinite;
    return sum;
  }
  static double latency_of(const sim::level& l) {
    double least = infinite;
    for (const sim::transport& t : l.transports) least = std::min(least, t.latency);
    return least;
  }

  // What the first `ranks` ranks of a member of level `l` can send out by it, or what passes in
  // both directions at once.
  double exit(std::size_t l, std::int64_t ranks, bool both) const {
    const sim::level& of = m_machine.levels[l];
    const std::int64_t member = sim::member_ranks(m_machine, l);
    std::set<std::int64_t> ports;
    for (std::int64_t r = 0; r < std::min(ranks, member); ++r)
      ports.insert(of.binding.empty() ? r * of.ports / member
                                      : of.binding[static_cast<std::size_t>(r)]);
    const auto used = static_cast<double>(ports.size());
    double most = static_cast<double>(ranks) * of_transports(of);
    if (of.port_bandwidth > 0) most = std::min(most, used * of.port_bandwidth);
    if (of.link_bandwidth > 0)
      most = std::min(most, of.link_bandwidth * static_cast<double>(of.groups - 1));
    if (both) most *= 2;
    if (both && of.port_both > 0) most = std::min(most, used * of.port_both);
    return most;
  }

  // Of `ranks` consecutive ranks that are one member of level `l`, or one rank.
  void by_group(std::size_t l, std::int64_t ranks) {
    if (ranks >= m_problem.ranks) return;
    double one_direction = 0, both_directions = 0, latency = infinite;
    for (std::size_t outer = 0; outer <= l; ++outer) {
      if (m_machine.levels[outer].groups < 2) continue;
      one_direction += exit(outer, ranks, false);
      both_directions += exit(outer, ranks, true);
      latency = std::min(latency, latency_of(m_machine.levels[outer]));
    }
    if (latency == infinite) return;
    const std::string group = ranks == 1 ? "one rank" : std::to_string(ranks) + " ranks";
    const std::int64_t full = m_problem.ranks / ranks * ranks;
    for (const bool root : {true, false}) {
      // Whether there is such a group.
      if (root ? m_problem.root >= full : m_problem.root < full && full < 2 * ranks) continue;
      const crossing c = crossing_of(m_problem, static_cast<double>(ranks), root);
      offer(c.out, one_direction, latency, "what leaves " + group);
      offer(c.in, one_direction, latency, "what enters " + group);
      offer(c.in + c.out, both_directions, latency, "what enters and leaves " + group);
    }
    if (m_problem.kind != kind::allreduce || m_problem.ranks % ranks != 0) return;
    const double groups = static_cast<double>(m_problem.ranks) / static_cast<double>(ranks);
    const double all = 2 * (groups - 1) * bytes();
    const std::string parts = "what all groups of " + group + " exchange";
    offer(all, groups * one_direction, latency, parts);
    offer(2 * all, groups * both_directions, latency, parts);
  }

  void by_levels() {
    const auto& levels = m_machine.levels;
    for (std::size_t l = 0; l < levels.size(); ++l) by_group(l, sim::member_ranks(m_machine, l));
    for (const sim::level& l : levels)
      if (&l - levels.data() ==
          static_cast<std::ptrdiff_t>(sim::common_level(m_machine, 0, m_problem.ranks - 1)))
        offer(latency_of(l), "the latency of a message by " + l.name);
  }

  // ---- graph

  double bytes() const {
    return static_cast<double>(m_problem.counts.at(0)) *
           static_cast<double>(m_problem.element_bytes);
  }

  static double latency_across(const wiring& w, const std::vector<bool>& inside) {
    double least = infinite;
    for (const sim::link& l : w.links)
      if (inside[static_cast<std::size_t>(l.from)] && !inside[static_cast<std::size_t>(l.to)])
        least = std::min(least, l.latency);
    return least == infinite ? 0 : least;
  }
  static double leaving(const wiring& w, const std::vector<bool>& inside) {
    double sum = 0;
    for (const sim::link& l : w.links)
      if (inside[static_cast<std::size_t>(l.from)] && !inside[static_cast<std::size_t>(l.to)])
        sum += l.bandwidth;
    return sum;
  }

  std::string names_of(const std::vector<int>& nodes) const {
    constexpr std::size_t shown = 8;
    std::string text;
    const std::int64_t more = sim::rank_count(m_machine) - m_problem.ranks;
    for (std::size_t i = 0; i < nodes.size() && i < shown; ++i) {
      const int node = nodes[i] < m_problem.ranks ? nodes[i] : nodes[i] + static_cast<int>(more);
      text += (i ? ", " : "") + sim::node_name(m_machine, node);
    }
    return nodes.size() > shown ? text + " and " + std::to_string(nodes.size() - shown) + " more"
                                : text;
  }

  // Each root's `per_root` bytes go to all ranks in `w`.
  void spreading(const wiring& w, double per_root, bool reversed) {
    roots wanted(static_cast<std::size_t>(w.ranks), 1);
    if (rooted(m_problem.kind)) {
      wanted.assign(wanted.size(), 0);
      wanted[static_cast<std::size_t>(m_problem.root)] = 1;
    }
    binds(w, tightest_cut(w, wanted), per_root, reversed);
  }

  // Each unit of what passes the cut has so many bytes.
  void binds(const wiring& w, const cut& c, double per_root, bool reversed) {
    if (c.units == 0) return;
    std::vector<bool> inside(static_cast<std::size_t>(w.nodes));
    for (const int n : c.inside) inside[static_cast<std::size_t>(n)] = true;
    std::vector<int> outside;
    for (int n = 0; n < w.nodes; ++n)
      if (!inside[static_cast<std::size_t>(n)]) outside.push_back(n);
    const bool few = outside.size() < c.inside.size();
    const std::string side = names_of(few ? outside : c.inside);
    offer(static_cast<double>(c.units) * per_root, c.bandwidth, latency_across(w, inside),
          std::string(few == reversed ? "what leaves " : "what enters ") + side);
  }

  void by_graph() {
    const wiring w = wiring_of(m_machine, m_problem.ranks);
    constexpr int max_nodes = 512;
    if (w.nodes > max_nodes) return;
    const bool spreads = m_problem.kind == kind::allgather || m_problem.kind == kind::broadcast;
    const bool reduces =
        m_problem.kind == kind::reduce_scatter_block || m_problem.kind == kind::reduce;
    if (spreads) spreading(w, bytes(), false);
    if (reduces) spreading(w.reversed(), bytes(), true);
    if (m_problem.kind == kind::scatter)
      binds(w, tightest_cut_of_scatter(w, m_problem.root), bytes(), false);
    if (m_problem.kind == kind::gather)
      binds(w.reversed(), tightest_cut_of_scatter(w.reversed(), m_problem.root), bytes(), true);
    for (int r = 0; r < w.ranks; ++r) by_side(w, r, 1);
    const std::int64_t copy = m_machine.levels.back().groups;
    if (m_machine.levels.size() > 1)
      for (std::int64_t first = 0; first + copy <= w.ranks; first += copy)
        by_side(w, static_cast<int>(first), static_cast<int>(copy));
    if (m_problem.kind == kind::allreduce) all_ranks(w);
    if (m_problem.kind == kind::alltoall)
      for (int r = 0; r < w.ranks; ++r) by_blocks(w, r);
    by_distance(w);
  }

  // Consecutive ranks, with the switches that only they reach being outside.
  void by_side(const wiring& w, int first, int count) {
    if (count >= m_problem.ranks) return;
    std::vector<bool> inside(static_cast<std::size_t>(w.nodes));
    std::vector<int> ranks;
    for (int r = first; r < first + count; ++r) {
      inside[static_cast<std::size_t>(r)] = true;
      ranks.push_back(r);
    }
    if (count > 1) take_switches(w, inside);
    const bool root = m_problem.root >= first && m_problem.root < first + count;
    const crossing c = crossing_of(m_problem, count, root);
    const wiring back = w.reversed();
    offer(c.out, leaving(w, inside), latency_across(w, inside), "what leaves " + names_of(ranks));
    offer(c.in, leaving(back, inside), latency_across(back, inside),
          "what enters " + names_of(ranks));
  }

  // What the ranks send that are on the side of rank `r` of its tightest cut.
  void by_blocks(const wiring& w, int r) {
    cut c = tightest_cut_of_scatter(w, r);
    c.units *= w.ranks - c.units;
    binds(w, c, bytes(), false);
  }

  // Switches all of whose neighbours are inside are so too.
  static void take_switches(const wiring& w, std::vector<bool>& inside) {
    for (bool changed = true; changed;) {
      changed = false;
      for (int n = w.ranks; n < w.nodes; ++n) {
        if (inside[static_cast<std::size_t>(n)]) continue;
        bool all = true;
        for (const sim::link& l : w.links) {
          if (l.from == n) all = all && inside[static_cast<std::size_t>(l.to)];
          if (l.to == n) all = all && inside[static_cast<std::size_t>(l.from)];
        }
        if (all) inside[static_cast<std::size_t>(n)] = changed = true;
      }
    }
  }

  void all_ranks(const wiring& w) {
    double out = 0, in = 0;
    for (const sim::link& l : w.links) {
      if (l.from < w.ranks) out += l.bandwidth;
      if (l.to < w.ranks) in += l.bandwidth;
    }
    const double all = 2 * (static_cast<double>(m_problem.ranks) - 1) * bytes();
    offer(all, out, 0, "what all ranks send");
    offer(all, in, 0, "what all ranks get");
  }

  // The latency from the farthest rank, through ranks as well (Floyd and Warshall).
  void by_distance(const wiring& w) {
    const auto nodes = static_cast<std::size_t>(w.nodes);
    std::vector<std::vector<double>> far(nodes, std::vector<double>(nodes, infinite));
    for (std::size_t n = 0; n < nodes; ++n) far[n][n] = 0;
    for (const sim::link& l : w.links) {
      double& d = far[static_cast<std::size_t>(l.from)][static_cast<std::size_t>(l.to)];
      d = std::min(d, l.latency);
    }
    for (std::size_t k = 0; k < nodes; ++k)
      for (std::size_t a = 0; a < nodes; ++a)
        for (std::size_t b = 0; b < nodes; ++b)
          far[a][b] = std::min(far[a][b], far[a][k] + far[k][b]);
    const auto ranks = static_cast<std::size_t>(w.ranks);
    const auto root = static_cast<std::size_t>(m_problem.root);
    const bool from_root = m_problem.kind == kind::broadcast || m_problem.kind == kind::scatter;
    const bool to_root = m_problem.kind == kind::reduce || m_problem.kind == kind::gather;
    for (std::size_t a = 0; a < ranks; ++a)
      for (std::size_t b = 0; b < ranks; ++b)
        if ((!from_root || a == root) && (!to_root || b == root) && far[a][b] < infinite)
          offer(far[a][b],
                "the latency from rank " + std::to_string(a) + " to rank " + std::to_string(b));
  }

  const plan::problem& m_problem;
  const sim::machine& m_machine;
  bound m_best;
};

}  // namespace

bound lower_bound(const plan::problem& p, const sim::machine& m) { return bounder(p, m).run(); }

}  // namespace sucl::tune
