// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "unit/device_kernels/drawn_plan.hpp"

#include <algorithm>
#include <iterator>
#include <random>

namespace sucl::testing {
namespace {

element input_of(int rank, std::size_t i) {
  return static_cast<element>(rank * 1000003 + static_cast<int>(i * 7919 % 100000));
}

std::vector<int> some_ranks(int ranks, std::mt19937& random) {
  std::vector<int> list;
  for (int r = 0; r < ranks; ++r)
    if (random() % 3 != 0) list.push_back(r);
  if (list.empty()) list.push_back(static_cast<int>(random() % static_cast<unsigned>(ranks)));
  return list;
}

// Blocks of one size in each memory. A primitive of a step writes a block that no other one of the
// step touches.
class drawing {
 public:
  drawing(int ranks, unsigned seed) : m_ranks(ranks), m_random(seed) {
    constexpr std::size_t sizes[] = {1, 3, 16, 100, 257, 1024, 3000};
    m_block = sizes[m_random() % std::size(sizes)];
  }

  drawn make() {
    const std::size_t all = blocks * m_block;
    drawn d{composition{m_ranks}, options(), {m_ranks, all, all, all}, all, all};
    for (int r = 0; r < m_ranks; ++r)
      for (std::size_t i = 0; i < all; ++i) {
        d.outcome.of[0][static_cast<std::size_t>(r)][i] = input_of(r, i);
        d.outcome.known[0][static_cast<std::size_t>(r)][i] = {{r, i / m_block}};
      }
    const unsigned steps = 1 + m_random() % 4;
    for (unsigned s = 0; s < steps; ++s) {
      if (s > 0) d.what.fence();
      step(d);
    }
    return d;
  }

 private:
  static constexpr std::size_t blocks = 6;

  compile_options options() {
    compile_options o;
    if (m_random() % 2) o.hierarchy = {(m_ranks + 1) / 2, 2};
    if (!o.hierarchy.empty() && m_random() % 2) o.stripe = 2;
    if (!o.hierarchy.empty() && m_random() % 3 == 0) o.ring = o.hierarchy.front();
    o.pipeline = 1 + static_cast<int>(m_random() % 4);
    return o;
  }

  slice block_of(slice::memory m, std::size_t b) const { return {m, b * m_block, m_block}; }
  slice::memory any_memory() { return static_cast<slice::memory>(m_random() % 3); }

  void step(drawn& d) {
    const memories before = d.outcome;
    std::vector<std::size_t> free[memories::spaces];
    for (std::size_t b = 0; b < blocks; ++b)
      for (auto& f : free) f.push_back(b);
    const auto take = [&](slice::memory m) {
      auto& list = free[memories::index(m)];
      std::swap(list[m_random() % list.size()], list.back());
      const std::size_t b = list.back();
      list.pop_back();
      return block_of(m, b);
    };
    for (int n = 0; n < 3; ++n) {
      const slice::memory target = m_random() % 2 ? slice::memory::recv : slice::memory::scratch;
      const slice from = take(any_memory()), to = take(target);
      const auto ranks = some_ranks(m_ranks, m_random);
      const int root = static_cast<int>(m_random() % static_cast<unsigned>(m_ranks));
      if (m_random() % 2)
        multicast(d, before, from, to, root, ranks);
      else
        reduction(d, before, from, to, root, ranks);
    }
  }

  void multicast(drawn& d, const memories& before, const slice& from, const slice& to, int root,
                 const std::vector<int>& ranks) {
    const sources& known = before.known_at(root, from);
    if (known.empty()) return;
    d.what.multicast(from, to, root, ranks);
    for (const int r : ranks)
      for (std::size_t i = 0; i < from.count; ++i)
        set(d, r, to, i, value(before, root, from, i), known);
  }

  void reduction(drawn& d, const memories& before, const slice& from, const slice& to, int root,
                 const std::vector<int>& ranks) {
    sources all;
    for (const int r : ranks) {
      const sources& known = before.known_at(r, from);
      const std::size_t apart = all.size() + known.size();
      all.insert(known.begin(), known.end());
      if (known.empty() || all.size() != apart) return;
    }
    d.what.reduction(from, to, ranks, root, op::sum);
    for (std::size_t i = 0; i < from.count; ++i) {
      std::uint32_t sum = 0;
      for (const int r : ranks) sum += static_cast<std::uint32_t>(value(before, r, from, i));
      set(d, root, to, i, static_cast<element>(sum), all);
    }
  }

  static element value(const memories& m, int rank, const slice& s, std::size_t i) {
    return m.of[memories::index(s.where)][static_cast<std::size_t>(rank)][s.offset + i];
  }
  static void set(drawn& d, int rank, const slice& s, std::size_t i, element v,
                  const sources& from) {
    const int space = memories::index(s.where);
    d.outcome.of[space][static_cast<std::size_t>(rank)][s.offset + i] = v;
    d.outcome.known[space][static_cast<std::size_t>(rank)][s.offset + i] = from;
  }

  const int m_ranks;
  std::mt19937 m_random;
  std::size_t m_block;
};

}  // namespace

drawn draw_plan(int ranks, unsigned seed) {
  for (unsigned n = 0;; ++n) {
    drawn d = drawing(ranks, seed * 1000 + n).make();
    const auto& all = d.what.primitives();
    if (std::any_of(all.begin(), all.end(), [](const auto& p) { return p.what != kind::barrier; }))
      return d;
  }
}

}  // namespace sucl::testing
