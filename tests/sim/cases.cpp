// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"

#include <algorithm>
#include <utility>

namespace sucl::plan::cases {

std::vector<kind> kinds() {
  std::vector<kind> all;
  for (int k = SUCL_KIND_BROADCAST; k <= SUCL_KIND_EXSCAN; ++k) all.push_back(static_cast<kind>(k));
  return all;
}

problem make_problem(kind k, int ranks, std::uint64_t count, std::uint64_t element, int root) {
  problem p;
  p.kind = k;
  p.ranks = ranks;
  p.root = rooted(k) ? root : 0;
  p.element_bytes = element;
  const auto uneven = [&](std::uint64_t i) { return i % 5 == 3 ? 0 : count + i * 7 % 4; };
  switch (k) {
    case kind::reduce_scatter:
    case kind::allgatherv:
    case kind::gatherv:
    case kind::scatterv:
      for (int r = 0; r < ranks; ++r) p.counts.push_back(uneven(static_cast<std::uint64_t>(r)));
      break;
    case kind::alltoallv:
      for (int i = 0; i < ranks * ranks; ++i)
        p.counts.push_back(uneven(static_cast<std::uint64_t>(i)));
      break;
    default: p.counts = {count};
  }
  return p;
}

namespace {

/// The recipes of an algorithm that are tried, by the parameters that they have.
class recipe_list {
 public:
  recipe_list(const algorithm_info& a, const problem& p) : m_problem(p), m_ranks(p.ranks) {
    m_plain.algorithm = a.name;
    m_list.push_back(m_plain);
    add_flat();
    add_two_levels();
    add_composed();
    add_staggered();
    add_placements();
  }

  /// Those that the algorithm takes, each once.
  std::vector<recipe> result() && {
    std::erase_if(m_list, [&](const recipe& r) { return !refusal(m_problem, r).empty(); });
    for (auto i = m_list.begin(); i != m_list.end(); ++i)
      m_list.erase(std::remove(i + 1, m_list.end(), *i), m_list.end());
    return std::move(m_list);
  }

 private:
  template <class Change>
  void with(const Change& change) {
    recipe r = m_plain;
    change(r);
    m_list.push_back(r);
  }

  int nodes(int width) const { return (m_ranks + width - 1) / width; }

  template <class Function>
  std::vector<int> on(const Function& node_of) const {
    std::vector<int> list;
    for (int i = 0; i < m_ranks; ++i) list.push_back(node_of(i));
    return list;
  }

  void add_flat() {
    const int n = m_ranks;
    with([](recipe& r) { r.ports = 2; });
    with([](recipe& r) { r.pipeline = 3; });
    with([](recipe& r) { r.radices = {3}; });
    with([](recipe& r) { r.radices = {5}; });
    with([](recipe& r) { r.split = 1; });
    with([](recipe& r) {
      r.split = 0;
      r.ports = 1;
    });
    with([&](recipe& r) { r.radices = {std::max(n, 2)}; });
    with([&](recipe& r) {
      r.radices = {std::max(n, 2)};
      r.split = 0;
    });
    with([&](recipe& r) {
      if (n % 6 == 0 && n > 6) r.radices = {2, n / 6, 3};
    });
    with([](recipe& r) {
      r.radices = {4, 2, 3};  // of cyclic shifts: any number of ranks
      r.ports = 2;
    });
    with([](recipe& r) { r.segments = 4; });
    for (const char* inner : {"direct", "exchange", "cyclic"})
      with([&](recipe& r) { r.inner = inner; });
  }

  void add_two_levels() {
    for (const char* inner : {"direct", "ring", "exchange", "cyclic", "peer"})
      with([&](recipe& r) {
        r.inner = inner;
        r.hierarchy = {nodes(4), 4};
      });
    for (const char* outer : {"direct", "exchange", "cyclic", "doubling", "tree", "peer"})
      with([&](recipe& r) {
        r.outer = outer;
        r.inner = "peer";
        r.hierarchy = {nodes(4), 4};
      });
    with([&](recipe& r) {
      r.leaders = 1;
      r.hierarchy = {nodes(4), 4};
    });
    with([&](recipe& r) {
      r.leaders = 2;
      r.hierarchy = {nodes(8), 8};
      r.pipeline = 2;
    });
    with([&](recipe& r) {
      r.hierarchy = {nodes(12), 2, 6};
      r.via = {"mpi", "ipc", "ipc"};
    });
  }

  void add_composed() {
    for (const int steps : {1, 2, 3}) {
      with([&](recipe& r) { r.steps = steps; });
      with([&](recipe& r) {
        r.steps = steps;
        r.hierarchy = {nodes(4), 4};
        r.fuse = 1024;
      });
      with([&](recipe& r) {
        r.steps = steps;
        r.hierarchy = {2, nodes(12), 3, 2};
        r.pipeline = 2;
      });
      with([&](recipe& r) {
        r.steps = steps;
        r.hierarchy = {nodes(6), 3, 2};
        r.stripe = m_ranks > 4 ? 4 : 2;
        r.ring = nodes(6);
        r.pipeline = 3;
      });
      with([&](recipe& r) {
        r.steps = steps;
        r.hierarchy = {nodes(4), 4};
        r.stripe = 4;
      });
      with([&](recipe& r) {
        r.steps = steps;
        r.hierarchy = {nodes(2), 2};
        r.ring = nodes(2);
      });
    }
  }

  void add_staggered() {
    with([](recipe& r) {
      r.pipeline = 3;
      r.stagger = 1;
    });
    for (const char* pattern : {"direct", "peer"})
      with([&](recipe& r) {
        r.hierarchy = {nodes(4), 4};
        r.inner = pattern;
        r.pipeline = 3;
        r.stagger = 1;
      });
    with([&](recipe& r) {
      r.hierarchy = {nodes(4), 4};
      r.stripe = m_ranks > 4 ? 4 : 2;
      r.ring = nodes(4);
      r.pipeline = 4;
      r.stagger = 1;
    });
  }

  // On nodes that are given rank by rank.
  void add_placements() {
    const std::pair<int, std::vector<int>> placements[] = {{0, on([](int i) { return i / 4; })},
                                                           {1, on([](int i) { return i % 3; })},
                                                           {2, on([](int i) {
                                                              return i < 3 ? 7 : i < 5 ? 2 : 4;
                                                            })},
                                                           {0, on([](int i) { return i; })}};
    for (const auto& [leaders, nodes] : placements)
      with([&, leaders = leaders, nodes = nodes](recipe& r) {
        r.leaders = leaders;
        r.nodes = nodes;
      });
    for (const char* outer : {"direct", "exchange", "cyclic", "doubling", "tree"})
      with([&](recipe& r) {
        r.outer = outer;
        r.nodes = on([](int i) { return i / 3; });
      });
  }

  const problem& m_problem;
  int m_ranks;
  recipe m_plain;
  std::vector<recipe> m_list;
};

}  // namespace

std::vector<recipe> recipes(const algorithm_info& a, const problem& p) {
  return recipe_list(a, p).result();
}

std::string describe(const problem& p, const recipe& r) {
  return std::string(sucl::name(p.kind)) + " of " + std::to_string(p.ranks) + " ranks, root " +
         std::to_string(p.root) + ", " + std::to_string(p.counts[0]) + " elements of " +
         std::to_string(p.element_bytes) + " bytes" + (p.in_place ? ", in place" : "") + ": " +
         to_text(r);
}

}  // namespace sucl::plan::cases
