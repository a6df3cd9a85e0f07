// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/rank_hierarchy.hpp"

#include <algorithm>
#include <numeric>

namespace sucl::tune {
namespace {

constexpr const char* peer_transport = "ipc";

void add(std::vector<rank_hierarchy>& list, rank_hierarchy s) {
  if (std::find(list.begin(), list.end(), s) == list.end()) list.push_back(std::move(s));
}

}  // namespace

std::vector<int> factors_up_to(int n, int radix) {
  std::vector<int> list;
  for (int f = radix; n > 1;) {
    if (n % f == 0) {
      list.push_back(f);
      n /= f;
    } else if (f <= radix && f > 2) {
      --f;
    } else {
      f = f <= radix ? radix + 1 : f + 1;
    }
  }
  std::sort(list.rbegin(), list.rend());
  return list;
}

rank_hierarchy machine_hierarchy(const sim::machine& m, int ranks) {
  const sim::hierarchy h = sim::hierarchy_of(m, ranks);
  rank_hierarchy s{h.factors, h.vias};
  if (s.factors.empty()) s = {{ranks}, {"any"}};
  return s;
}

rank_hierarchy with_outer(const rank_hierarchy& s, const std::vector<int>& outer) {
  rank_hierarchy t;
  t.factors = outer;
  t.vias.assign(outer.size(), s.vias.front());
  t.factors.insert(t.factors.end(), s.factors.begin() + 1, s.factors.end());
  t.vias.insert(t.vias.end(), s.vias.begin() + 1, s.vias.end());
  return t;
}

rank_hierarchy with_one_inner(const rank_hierarchy& s) {
  if (s.factors.size() < 3) return s;
  const bool alike = std::all_of(s.vias.begin() + 1, s.vias.end(),
                                 [&](const std::string& via) { return via == s.vias[1]; });
  return {{s.factors[0], node_ranks(s)}, {s.vias[0], alike ? s.vias[1] : "any"}};
}

int node_ranks(const rank_hierarchy& s) {
  return std::accumulate(s.factors.begin() + 1, s.factors.end(), 1, std::multiplies<>());
}

std::vector<rank_hierarchy> rank_hierarchies(const sim::machine& m, int ranks) {
  const rank_hierarchy own = machine_hierarchy(m, ranks);
  std::vector<rank_hierarchy> list{own};
  add(list, with_one_inner(own));
  const int nodes = own.factors.front();
  for (const int radix : {2, 4, 8}) {
    const std::vector<int> outer = factors_up_to(nodes, radix);
    if (outer.empty() || outer.front() > 16) continue;
    for (const rank_hierarchy& base : {own, with_one_inner(own)})
      add(list, with_outer(base, outer));
  }
  // Two levels of groups of groups.
  for (int wide = 2; wide * wide <= nodes; ++wide)
    if (nodes % wide == 0 && wide * wide * 4 > nodes)
      add(list, with_outer(own, {nodes / wide, wide}));
  return list;
}

bool share_memory(const sim::machine& m, int ranks) {
  if (ranks < 2) return true;
  const std::size_t outermost = sim::hierarchy_of(m, ranks).levels.front();
  return std::all_of(m.levels.begin() + static_cast<std::ptrdiff_t>(outermost), m.levels.end(),
                     [](const sim::level& l) {
                       return l.groups < 2 ||
                              std::any_of(
                                  l.transports.begin(), l.transports.end(),
                                  [](const sim::transport& t) { return t.name == peer_transport; });
                     });
}

}  // namespace sucl::tune
