// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/cost/estimate.hpp"

#include "tune/cost/stages.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sucl::tune {
namespace {

// Ranks in a row that behave alike: a group with its distance and what it carries.
struct group {
  double size = 1;
  double stride = 1;  // between neighbours
  double busy = 1;    // part of all ranks that belong to such groups
  std::string via;
};

class estimator {
 public:
  estimator(const plan::problem& p, const plan::recipe& r, const sim::machine& m)
      : m_problem(p), m_recipe(r), m_sum(m), m_ranks(p.ranks), m_hierarchy(r.hierarchy) {
    if (m_hierarchy.empty()) m_hierarchy = {p.ranks};
    m_bytes = static_cast<double>(p.counts[0] * p.element_bytes);
  }

  estimate run() {
    whole();
    const int channels = std::max(1, m_recipe.pipeline);
    if (m_recipe.segments > 1) return segmented();
    return m_sum.total(channels);
  }

 private:
  // The level that partners in groups of `span` consecutive ranks meet at.
  std::size_t level_of(double span) const {
    const auto& levels = m_sum.machine().levels;
    for (std::size_t l = levels.size(); l-- > 0;) {
      const double inside = static_cast<double>(sim::member_ranks(m_sum.machine(), l));
      if (inside * levels[l].groups >= span) return l;
    }
    return 0;
  }
  double inside(std::size_t level) const {
    const auto member = static_cast<double>(sim::member_ranks(m_sum.machine(), level));
    return std::min(member, m_ranks);
  }
  bool reducing() const { return reduces(m_problem.kind); }

  void add(const group& g, double steps, double messages, double bytes, bool reduce,
           bool peer = false) {
    if (g.size < 2 || bytes <= 0) return;
    stage s;
    s.level = level_of(g.size * g.stride);
    s.via = g.via;
    s.steps = steps;
    s.messages = messages;
    s.bytes = bytes;
    s.active = std::max(1.0, inside(s.level) * g.busy);
    s.reduced = reduce ? messages * bytes : 0;
    s.ranks = m_ranks * g.busy;
    s.peer = peer;
    m_sum.add(s);
  }

  // One half of an allreduce over whole vectors of `bytes`: reduce-scatter or allgather.
  void half(const group& g, double bytes, const std::string& pattern, bool reduce,
            const std::vector<int>& radices = {}) {
    const double part = bytes / g.size;
    if (pattern == "ring") return ring(g, g.size - 1, part, reduce);
    if (pattern == "peer") return add(g, 1, g.size - 1, part, reduce, true);
    if (pattern == "exchange") return exchange(g, bytes, radices, reduce);
    if (pattern == "cyclic") return cyclic(g, bytes, radices, reduce);
    spread(g, part, reduce);
  }

  // Neighbours: at each level that the group spans one rank of a member crosses.
  void ring(const group& g, double steps, double bytes, bool reduce) {
    group crossing = g;
    const std::size_t level = level_of(g.size * g.stride);
    if (g.stride < inside(level)) crossing.busy = g.busy * g.stride / inside(level);
    const double busy = crossing.busy;
    crossing.busy = busy;
    stage s;
    s.level = level;
    s.via = g.via;
    s.steps = steps;
    s.bytes = bytes;
    s.active = std::max(1.0, inside(level) * busy);
    s.reduced = reduce ? bytes : 0;
    s.ranks = m_ranks * g.busy;
    if (bytes > 0 && g.size > 1) m_sum.add(s);
  }

  void exchange(const group& g, double bytes, std::vector<int> radices, bool reduce) {
    if (radices.empty())
      for (double n = g.size; n > 1; n = std::ceil(n / 2)) radices.push_back(2);
    double stride = g.stride, left = bytes;
    for (const int f : radices) {
      group step = g;
      step.size = f;
      step.stride = stride;
      left /= f;
      add(step, 1, f - 1, left, reduce);
      stride *= f;
    }
  }

  // Every step goes as far as the group does.
  void cyclic(const group& g, double bytes, std::vector<int> radices, bool reduce) {
    if (radices.empty()) radices = {2};
    double narrow = 1;
    for (std::size_t k = 0; narrow < g.size; ++k) {
      const double wide = std::min(g.size, narrow * radices[std::min(k, radices.size() - 1)]);
      add(g, 1, std::ceil(wide / narrow) - 1, bytes * narrow / g.size, reduce);
      narrow = wide;
    }
    m_sum.add_copy(bytes, m_ranks * g.busy);
  }

  // A message to each other member, over all levels between them.
  void spread(const group& g, double bytes, bool reduce) {
    const auto& levels = m_sum.machine().levels;
    double reached = 1;
    for (std::size_t l = levels.size(); l-- > 0;) {
      const double span = inside(l) * levels[l].groups;
      const double within = std::clamp(std::floor(span / g.stride), 1.0, g.size);
      group here = g;
      here.size = 2;
      here.stride = span / 2;
      if (within > reached) add(here, 1, within - reached, bytes, reduce);
      reached = std::max(reached, within);
    }
  }

  void whole_vectors(const group& g, double bytes, int radix, bool reduce) {
    double stride = g.stride;
    for (double n = g.size; n > 1; n = std::ceil(n / radix)) {
      group step = g;
      step.size = std::min<double>(radix, n);
      step.stride = stride;
      add(step, 1, step.size - 1, bytes, reduce);
      stride *= radix;
    }
  }

  // A tree over the group: few ranks are busy, the root the most.
  void tree(const group& g, double bytes, int radix, bool reduce, bool shrinking = false) {
    double stride = 1, held = 1;
    for (double n = g.size; n > 1; n = std::ceil(n / radix)) {
      group step = g;
      step.size = std::min<double>(radix, n);
      step.stride = stride * g.stride;
      step.busy = g.busy / stride / step.size;
      add(step, 1, step.size - 1, shrinking ? bytes * held : bytes, reduce);
      stride *= radix;
      held = std::min(held * radix, g.size);
    }
  }

  void hierarchical(double bytes) {
    const std::size_t levels = m_hierarchy.size();
    double stride = 1, busy = 1, left = bytes;
    std::vector<std::pair<group, double>> inner;
    for (std::size_t l = levels; l-- > 1;) {
      const group g{static_cast<double>(m_hierarchy[l]), stride, busy, via(l)};
      const double leaders =
          m_recipe.leaders > 0 ? std::min<double>(m_recipe.leaders, g.size) : g.size;
      inner.emplace_back(g, left);
      half_of(g, left, leaders, true);
      stride *= g.size;
      busy *= leaders / g.size;
      left /= leaders;
    }
    const group top{static_cast<double>(m_hierarchy[0]), stride, busy, via(0)};
    const std::string outer = m_recipe.outer.empty() ? "ring" : m_recipe.outer;
    if (outer == "doubling") {
      whole_vectors(top, left, 2, true);
    } else if (outer == "tree") {
      tree(top, left, 2, true);
      tree(top, left, 2, false);
    } else {
      half(top, left, outer, true);
      half(top, left, outer, false);
    }
    for (std::size_t i = inner.size(); i-- > 0;) {
      const group& g = inner[i].first;
      const double leaders =
          m_recipe.leaders > 0 ? std::min<double>(m_recipe.leaders, g.size) : g.size;
      half_of(g, inner[i].second, leaders, false);
    }
  }

  // A half that ends (or begins) at some leaders only, whose links are the bottleneck.
  void half_of(const group& g, double bytes, double leaders, bool reduce) {
    const std::string pattern = m_recipe.inner.empty() ? "direct" : m_recipe.inner;
    if (leaders >= g.size) return half(g, bytes, pattern, reduce);
    group few = g;
    few.busy = g.busy * leaders / g.size;
    add(few, pattern == "ring" ? g.size - 1 : 1, pattern == "ring" ? 1 : g.size - 1,
        bytes / leaders, reduce, pattern == "peer");
  }

  std::string via(std::size_t l) const {
    return l < m_recipe.via.size() ? m_recipe.via[l] : std::string();
  }

  // Composed: the groups of each level, the outermost first.
  std::vector<group> levels_of_composition() const {
    std::vector<group> list;
    double stride = m_ranks;
    for (std::size_t l = 0; l < m_hierarchy.size(); ++l) {
      stride = std::max(1.0, std::ceil(stride / m_hierarchy[l]));
      list.push_back({static_cast<double>(m_hierarchy[l]), stride, 1, via(l)});
    }
    return list;
  }

  // One root and all ranks: a tree or ring, in stripes.
  void composed_root(double bytes, bool reduce) {
    const std::vector<group> list = levels_of_composition();
    const double stripes = m_recipe.stripe;
    double node = 1;
    for (std::size_t l = list.size(); l-- > 0 && node < stripes;) node *= list[l].size;
    if (stripes > 1)
      add({stripes, 1, 1 / m_ranks, via(list.size() - 1)}, 1, stripes - 1, bytes / stripes, reduce);
    for (std::size_t l = 0; l < list.size(); ++l) {
      group g = list[l];
      const bool across = g.stride >= node;
      // In a node that has all stripes each of its ranks sends one of them.
      g.busy = (across ? stripes : std::max(1.0, stripes * g.stride / node)) / (g.stride * g.size);
      if (l == 0 && m_recipe.ring > 1) {
        stage s;
        s.level = level_of(g.size * g.stride);
        s.via = g.via;
        s.steps = g.size - 1;
        s.bytes = bytes / stripes;
        s.active = stripes;
        s.reduced = reduce ? s.bytes : 0;
        s.load = 1;
        s.ranks = stripes;
        m_sum.add(s);
      } else {
        add(g, 1, g.size - 1, bytes / stripes, reduce);
      }
    }
  }

  // Every rank is a root of a block.
  void composed_all(double block, bool reduce) {
    const double stripes = m_recipe.stripe;
    double blocks = 1;
    if (stripes > 1) add({stripes, 1, 1, {}}, 1, stripes - 1, block / stripes, false);
    for (const group& g : levels_of_composition()) {
      group here = g;
      if (m_recipe.ring > 1 && blocks == 1) {
        add(here, g.size - 1, stripes, block / stripes, reduce);
      } else {
        add(here, 1, (g.size - 1) * blocks * stripes, block / stripes, reduce);
      }
      blocks *= g.size;
    }
  }

  void composed() {
    const bool two = m_recipe.steps >= 2;
    const kind k = m_problem.kind;
    const double part = m_bytes / m_ranks;
    if (k == kind::allreduce) {
      if (m_recipe.steps == 3) {
        composed_root(m_bytes, true);
        composed_root(m_bytes, false);
      } else {
        composed_all(two ? part : m_bytes, true);
        if (two) composed_all(part, false);
      }
    } else if (k == kind::broadcast || k == kind::reduce) {
      if (!two) return composed_root(m_bytes, k == kind::reduce);
      composed_all(part, k == kind::reduce);
      rooted_blocks(part);
    } else if (k == kind::allgather || k == kind::allgatherv) {
      if (!two) return composed_all(m_bytes, false);
      rooted_blocks(m_bytes);
      composed_root(m_bytes * m_ranks, false);
    } else if (k == kind::reduce_scatter || k == kind::reduce_scatter_block) {
      if (!two) return composed_all(m_bytes, true);
      composed_root(m_bytes * m_ranks, true);
      rooted_blocks(m_bytes);
    } else if (k == kind::alltoall || k == kind::alltoallv) {
      composed_pairs();
    } else {
      rooted_blocks(m_bytes);
    }
  }

  // A block for each pair: along each level what belongs to other groups, through one rank each.
  void composed_pairs() {
    if (m_hierarchy.size() < 2) return spread({m_ranks, 1, 1, {}}, m_bytes, false);
    for (const group& g : levels_of_composition())
      add(g, 1, m_ranks * (g.size - 1) / g.size, m_bytes, false);
  }

  // A block between the root and each other rank. Stripes and hierarchies take it through several
  // ranks of the root's node.
  void rooted_blocks(double block) {
    double rails = m_recipe.algorithm == "composed" ? m_recipe.stripe : 1;
    if (m_hierarchy.size() > 1)
      rails = std::max(rails, std::min(m_ranks / m_hierarchy[0], inside(0)));
    if (rails > 1) add({rails, 1, 1 / m_ranks, {}}, 1, m_ranks, block * (rails - 1) / rails, false);
    spread({m_ranks, 1, rails / m_ranks, {}}, block / rails, false);
  }

  estimate segmented() {
    const double parts = std::max(1, m_recipe.segments) * std::max(1, m_recipe.pipeline);
    return m_sum.total(static_cast<int>(std::min(parts, 65536.0)));
  }

  void flat_halves(bool first, bool second, double bytes) {
    const std::string& a = m_recipe.algorithm;
    const group all{m_ranks, 1, 1, {}};
    const std::string pattern = a == "one_shot" || a == "two_shot" ? "peer" : a;
    if (first) half(all, bytes, pattern, true, m_recipe.radices);
    if (second) half(all, bytes, pattern, false, m_recipe.radices);
  }

  void allreduce() {
    const std::string& a = m_recipe.algorithm;
    const group all{m_ranks, 1, 1, {}};
    const int radix = m_recipe.radices.empty() ? 2 : m_recipe.radices[0];
    if (a == "hierarchical") return hierarchical(m_bytes);
    if (a == "doubling") return whole_vectors(all, m_bytes, radix, true);
    if (a == "tree" || a == "bine") {
      tree(all, m_bytes, radix, true);
      return tree(all, m_bytes, radix, false);
    }
    if (a == "one_shot") return add(all, 1, m_ranks - 1, m_bytes, true, true);
    if (a == "peer_exchange") {
      exchange(all, m_bytes, m_recipe.radices, true);
      return exchange(all, m_bytes, m_recipe.radices, false);
    }
    if (a != "exchange" || m_recipe.split < 0 ||
        m_recipe.split >= static_cast<int>(m_recipe.radices.size()))
      return flat_halves(true, true, m_bytes);
    mixed_exchange(m_bytes);
  }

  // The first radices scatter, the others exchange what is left.
  void mixed_exchange(double bytes) {
    const auto cut = m_recipe.radices.begin() + m_recipe.split;
    const group all{m_ranks, 1, 1, {}};
    const std::vector<int> halves{m_recipe.radices.begin(), cut};
    exchange(all, bytes, halves, true);
    double stride = 1;
    for (const int f : halves) stride *= f;
    const double left = bytes / stride;
    for (auto f = cut; f != m_recipe.radices.end(); ++f) {
      add({static_cast<double>(*f), stride, 1, {}}, 1, *f - 1, left, true);
      stride *= *f;
    }
    exchange(all, bytes, halves, false);
  }

  void rooted_vectors(bool reduce) {
    const std::string& a = m_recipe.algorithm;
    const group all{m_ranks, 1, 1, {}};
    const int radix = m_recipe.radices.empty() ? 2 : m_recipe.radices[0];
    if (a == "chain") {
      stage s;
      s.level = level_of(m_ranks);
      s.steps = m_ranks - 1;
      s.bytes = m_bytes;
      s.reduced = reduce ? m_bytes : 0;
      s.load = 1;
      s.ranks = 2;
      return m_sum.add(s);
    }
    if (a == "one_shot") return rooted_blocks(m_bytes);
    if (a.starts_with("scatter_")) {
      const std::string inner = m_recipe.inner.empty() ? "ring" : m_recipe.inner;
      rooted_blocks(m_bytes / m_ranks);
      return half(all, m_bytes, inner, reduce);
    }
    tree(all, m_bytes, radix, reduce);
  }

  void alltoall() {
    const group all{m_ranks, 1, 1, {}};
    if (m_recipe.algorithm == "pairwise") return add(all, m_ranks - 1, 1, m_bytes, false);
    if (m_recipe.algorithm != "bruck") return spread(all, m_bytes, false);
    const int radix = m_recipe.radices.empty() ? 2 : m_recipe.radices[0];
    const double steps = std::ceil(std::log(m_ranks) / std::log(radix) - 1e-9);
    add(all, steps, radix - 1, m_bytes * m_ranks / radix, false);
    // Each step packs and unpacks what it moves, block by block; in the end all blocks move.
    const double moved = 2 * steps * m_ranks * (radix - 1) / radix + m_ranks;
    m_sum.add_copy(moved * m_bytes, m_ranks, moved);
  }

  void whole() {
    if (m_ranks < 2 || m_bytes <= 0) return;
    if (m_recipe.algorithm == "composed") return composed();
    const int radix = m_recipe.radices.empty() ? 2 : m_recipe.radices[0];
    switch (m_problem.kind) {
      case kind::allreduce: return allreduce();
      case kind::reduce:
      case kind::broadcast: return rooted_vectors(m_problem.kind == kind::reduce);
      case kind::allgather:
      case kind::allgatherv: return flat_halves(false, true, m_bytes * m_ranks);
      case kind::reduce_scatter:
      case kind::reduce_scatter_block: return flat_halves(true, false, m_bytes * m_ranks);
      case kind::alltoall:
      case kind::alltoallv: return alltoall();
      case kind::scan:
      case kind::exscan: return whole_vectors({m_ranks, 1, 1, {}}, m_bytes, 2, true);
      default:
        if (m_recipe.algorithm != "tree") return rooted_blocks(m_bytes);
        return tree({m_ranks, 1, 1, {}}, m_bytes, radix, false, true);
    }
  }

  const plan::problem& m_problem;
  const plan::recipe& m_recipe;
  stage_sum m_sum;
  double m_ranks;
  double m_bytes = 0;
  std::vector<int> m_hierarchy;
};

}  // namespace

estimate rough_estimate(const plan::problem& p, const plan::recipe& r, const sim::machine& m) {
  return estimator(p, r, m).run();
}

}  // namespace sucl::tune
