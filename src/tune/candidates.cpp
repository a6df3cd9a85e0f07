// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/candidates.hpp"

#include "tune/rank_hierarchy.hpp"

#include <algorithm>

namespace sucl::tune {
namespace {

using plan::problem;
using plan::recipe;

// Collects recipes that can be built, none twice.
class collection {
 public:
  explicit collection(const problem& p) : m_problem(p) {}

  void add(recipe r) {
    if (!plan::refusal(m_problem, r).empty()) return;
    std::string text = plan::to_text(r);
    if (std::find(m_texts.begin(), m_texts.end(), text) != m_texts.end()) return;
    m_texts.push_back(std::move(text));
    m_list.push_back(std::move(r));
  }
  std::vector<recipe> take() { return std::move(m_list); }

 private:
  const problem& m_problem;
  std::vector<std::string> m_texts;
  std::vector<recipe> m_list;
};

recipe named(const char* algorithm) {
  recipe r;
  r.algorithm = algorithm;
  return r;
}

recipe in_hierarchy(const char* algorithm, const rank_hierarchy& s) {
  recipe r = named(algorithm);
  r.hierarchy = s.factors;
  r.via = s.vias;
  return r;
}

// The node's factors first, as an exchange meets the nearest ranks first.
std::vector<int> radices_of(const rank_hierarchy& s) {
  return {s.factors.rbegin(), s.factors.rend()};
}

void add_exchanges(collection& all, const problem& p, const std::vector<rank_hierarchy>& list) {
  std::vector<std::vector<int>> sets{{}};
  for (const int radix : {2, 4, 8, 16}) sets.push_back(factors_up_to(p.ranks, radix));
  for (const rank_hierarchy& s : list) sets.push_back(radices_of(s));
  for (const auto& radices : sets) {
    if (std::any_of(radices.begin(), radices.end(), [](int f) { return f > 64; })) continue;
    recipe r = named("cyclic");
    r.radices = radices;
    all.add(r);
    r.algorithm = "exchange";
    all.add(r);
    for (int split = 0; split < static_cast<int>(radices.size()); ++split) {
      r.split = split;
      all.add(r);
    }
  }
}

void add_flat(collection& all, const problem& p) {
  for (const char* name : {"ring", "direct", "pairwise", "bine"}) all.add(named(name));
  for (const char* name : {"doubling", "cyclic", "tree", "bruck"})
    for (const int radix : {2, 3, 4, 8, 16, 32}) {
      recipe r = named(name);
      r.radices = {radix};
      if (radix < 2 * p.ranks) all.add(r);
    }
  for (const char* name : {"scatter_allgather", "scatter_gather"})
    for (const char* inner : {"ring", "exchange", "cyclic", "direct"}) {
      recipe r = named(name);
      r.inner = inner;
      all.add(r);
    }
  for (const int segments : {1, 4, 16, 64, 256}) {
    recipe r = named("chain");
    r.segments = segments;
    all.add(r);
  }
  all.add(named("recursive_scan"));
}

// Algorithms that read and write the peers' memory.
void add_peer(collection& all, const problem& p) {
  for (const char* name : {"one_shot", "two_shot"}) all.add(named(name));
  for (const int radix : {2, 4, 8}) {
    recipe r = named("peer_exchange");
    r.radices = factors_up_to(p.ranks, radix);
    all.add(r);
  }
}

void add_hierarchical(collection& all, const sim::machine& m,
                      const std::vector<rank_hierarchy>& list) {
  for (const rank_hierarchy& s : list) {
    if (s.factors.size() < 2 || s.factors.size() > 5) continue;
    const bool peers =
        share_memory(m, node_ranks(machine_hierarchy(m, node_ranks(s) * s.factors[0]))) &&
        share_memory(m, node_ranks(s));
    for (const char* inner : {"direct", "peer", "ring", "exchange", "cyclic"}) {
      if (inner == std::string("peer") && !peers) continue;
      for (const char* outer : {"ring", "exchange", "cyclic", "doubling", "direct", "tree"})
        for (const int leaders : {0, 1}) {
          recipe r = in_hierarchy("hierarchical", s);
          r.inner = inner;
          r.outer = outer;
          r.leaders = leaders;
          all.add(r);
        }
    }
  }
}

// Stripes serve what has one root; where all ranks are roots, all NICs are busy without them.
void add_composed(collection& all, const problem& p, const std::vector<rank_hierarchy>& list) {
  const bool rooted_vector = p.kind == kind::broadcast || p.kind == kind::reduce;
  const int width = list.front().factors.size() > 1 ? node_ranks(list.front()) : 1;
  for (const rank_hierarchy& s : list)
    for (int steps = p.kind == kind::allreduce ? 2 : 1; steps <= 3; ++steps) {
      const bool one_root = rooted(p.kind) || steps == 3;
      for (const int stripe : {1, 2, width})
        for (const int ring : {1, s.factors.front()}) {
          if (stripe > (one_root ? width : 1)) continue;
          if (ring > 1 &&
              ((!rooted_vector && steps < 3) || s.factors.front() != list.front().factors.front()))
            continue;
          recipe r = in_hierarchy("composed", s);
          r.steps = steps;
          r.stripe = stripe;
          r.ring = ring;
          all.add(r);
        }
    }
}

// The transports that execute messages between ranks `near` and `far` apart, and all in between.
std::vector<std::string> transports(const sim::machine& m, std::int64_t near, std::int64_t far) {
  const std::int64_t last = sim::rank_count(m) - 1;
  if (far < near || near > last) return {};
  const std::size_t inner = sim::common_level(m, 0, near);
  const std::size_t outer = sim::common_level(m, 0, std::min(far, last));
  const auto has = [&](std::size_t level, const std::string& name) {
    const auto& list = m.levels[level].transports;
    return std::any_of(list.begin(), list.end(), [&](const auto& t) { return t.name == name; });
  };
  std::vector<std::string> names;
  for (const sim::transport& t : m.levels[outer].transports) {
    bool everywhere = true;
    for (std::size_t level = outer; level <= inner; ++level) everywhere &= has(level, t.name);
    if (everywhere) names.push_back(t.name);
  }
  return names;
}

// The same product of radices: two neighbours as one, or one as two.
std::vector<std::vector<int>> other_radices(const std::vector<int>& list) {
  std::vector<std::vector<int>> all;
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::vector<int> other = list;
    if (i + 1 < list.size()) {
      other[i] *= list[i + 1];
      other.erase(other.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      all.push_back(other);
    }
    for (int f = 2; f * f <= list[i]; ++f) {
      if (list[i] % f != 0) continue;
      other = list;
      other[i] = list[i] / f;
      other.insert(other.begin() + static_cast<std::ptrdiff_t>(i) + 1, f);
      all.push_back(other);
    }
  }
  return all;
}

}  // namespace

std::vector<recipe> candidates(const problem& p, const sim::machine& m) {
  collection all(p);
  const std::vector<rank_hierarchy> list = rank_hierarchies(m, p.ranks);
  add_flat(all, p);
  add_exchanges(all, p, list);
  if (share_memory(m, p.ranks)) add_peer(all, p);
  if (p.kind == kind::allreduce) add_hierarchical(all, m, list);
  add_composed(all, p, list);
  return all.take();
}

std::vector<published> hiccl_sets(const problem& p, const sim::machine& m) {
  std::vector<published> list;
  const rank_hierarchy own = machine_hierarchy(m, p.ranks);
  const bool rooted_vector = p.kind == kind::broadcast || p.kind == kind::reduce;
  const auto add = [&](const std::string& name, const rank_hierarchy& s, int ring, int stripe) {
    for (const int depth : {1, 4, 16, 64}) {
      recipe r = in_hierarchy("composed", s);
      r.steps = p.kind == kind::allreduce ? 2 : 1;
      r.stripe = stripe;
      r.ring = ring;
      r.pipeline = depth;
      r.stagger = depth > 1 ? 1 : 0;
      if (plan::refusal(p, r).empty())
        list.push_back({"HiCCL " + name + ", depth " + std::to_string(depth), r});
    }
  };
  const int nodes = own.factors.front();
  // Where all ranks are roots, all NICs are busy without stripes.
  const int width = rooted(p.kind) && own.factors.size() > 1 ? node_ranks(own) : 1;
  rank_hierarchy tree = own;
  if (own.factors.size() > 1 && nodes > 1) tree = with_outer(own, factors_up_to(nodes, 2));
  add("tree", tree, 1, width);
  if (rooted(p.kind) && !rooted_vector && width > 1) add("tree without stripes", tree, 1, 1);
  if (rooted_vector && own.factors.size() > 1) add("ring+tree", own, nodes, width);
  return list;
}

std::vector<published> ext_mpi_sets(const problem& p, const sim::machine& m) {
  std::vector<published> list;
  if (p.kind != kind::allreduce) return list;
  const auto add = [&](const std::string& name, recipe r) {
    if (plan::refusal(p, r).empty()) list.push_back({"ext_mpi " + name, std::move(r)});
  };
  const rank_hierarchy node = with_one_inner(machine_hierarchy(m, p.ranks));
  if (node.factors.size() == 2) {
    const bool peers = share_memory(m, node.factors[1]);
    for (const char* outer : {"exchange", "doubling", "cyclic"}) {
      recipe r = in_hierarchy("hierarchical", node);
      r.outer = outer;
      r.inner = "exchange";
      add(std::string("exchange node stage, ") + outer, r);
      if (peers) r.inner = "peer";
      if (peers) add(std::string("shared memory node stage, ") + outer, r);
    }
  }
  recipe r = named("exchange");
  r.radices = factors_up_to(p.ranks, 2);
  add("-2..,2..", r);
  r.split = 1;
  add("-2,2,2", r);
  r.split = -1;
  r.radices = factors_up_to(p.ranks, 4);
  add("-4,-2,2,4", r);
  r = named("cyclic");
  r.radices = {2};
  add("cyclic -2,-2,-2,2,2,2", r);
  return list;
}

std::vector<recipe> neighbours(const recipe& r, const problem& p, const sim::machine& m) {
  collection all(p);
  const auto with = [&](auto change) {
    recipe other = r;
    change(other);
    if (other != r) all.add(std::move(other));
  };
  with([](recipe& o) { o.pipeline = std::min(o.pipeline * 2, 256); });
  with([](recipe& o) { o.pipeline = std::max(o.pipeline / 2, 1); });
  with([](recipe& o) { o.pipeline = std::min(o.pipeline * 4, 256); });
  if (r.algorithm == "chain") {
    with([](recipe& o) { o.segments = std::min(o.segments * 2, 1024); });
    with([](recipe& o) { o.segments = std::max(o.segments / 2, 1); });
  }
  for (const int ports : {0, 1, 2, 4}) with([&](recipe& o) { o.ports = ports; });
  for (const int leaders : {0, 1, 2, 4}) with([&](recipe& o) { o.leaders = leaders; });
  // Stripes over the ranks of each level's groups, where they serve one root.
  const bool one_root = rooted(p.kind) || r.steps == 3;
  for (std::size_t l = r.hierarchy.size(), width = 1; l-- > 0 && one_root; width *= r.hierarchy[l])
    with([&](recipe& o) { o.stripe = static_cast<int>(width); });
  for (auto& radices : other_radices(r.radices)) with([&](recipe& o) { o.radices = radices; });
  if (r.split >= 0)
    for (const int split : {r.split - 1, r.split + 1}) with([&](recipe& o) { o.split = split; });
  with([](recipe& o) { o.stagger = o.pipeline > 1 ? 1 - o.stagger : 0; });
  if (r.algorithm == "composed") with([](recipe& o) { o.fuse = o.fuse == 0 ? 4096 : 0; });
  // Other divisions of the same machine; a ring goes over the machine's own outermost groups.
  for (const rank_hierarchy& s : rank_hierarchies(m, p.ranks))
    if (r.hierarchy.size() > 1 && r.ring == 1 && s.factors != r.hierarchy)
      with([&](recipe& o) {
        o.hierarchy = s.factors;
        o.via = s.vias;
      });
  std::int64_t stride = 1;
  for (std::size_t l = r.via.size(); l-- > 0; stride *= r.hierarchy[l])
    for (const std::string& via : transports(m, stride, stride * (r.hierarchy[l] - 1)))
      with([&](recipe& o) { o.via[l] = via; });
  return all.take();
}

}  // namespace sucl::tune
