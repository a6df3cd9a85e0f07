// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/compose/composition.hpp"

#include <algorithm>

namespace sucl::plan {
namespace {

using type = primitive::type;

// Writes one step of one channel: all transfers are started, every rank fences its own, then the
// reductions follow.
class step_writer {
 public:
  step_writer(builder& b, bool in_order)
      : m_builder(b), m_in_order(in_order), m_touched(static_cast<std::size_t>(b.ranks())) {}

  void start(const primitive& p) {
    m_builder.set_level(p.level);
    if (p.what == type::multicast) {
      for (const endpoint& l : p.leaves) move(p, p.root, l);
      return;
    }
    if (m_in_order) return reduce_in_order(p);
    // The root's own part comes first; else the first one goes straight to the result.
    const auto own = std::find_if(p.leaves.begin(), p.leaves.end(),
                                  [&](const endpoint& l) { return l.rank == p.root.rank; });
    const endpoint& first = own != p.leaves.end() ? *own : p.leaves[0];
    move(p, first, p.root);
    for (const endpoint& l : p.leaves) {
      if (l.rank == first.rank) continue;
      m_sums.push_back({p.root.rank, p.level, p.root.at, landing_address(p, l), p.bytes, false});
    }
  }

  void finish() {
    for (const rank_mark& r : m_marks) m_builder.fence(r.rank);
    for (const sum& s : m_sums) {
      m_builder.set_level(s.level);
      if (s.copies)
        m_builder.copy(s.rank, s.dst, s.src, s.bytes);
      else
        m_builder.reduce(s.rank, s.dst, s.src, s.bytes);
    }
    for (const rank_mark& r : m_marks) {
      m_builder.scratch_release(r.rank, r.mark);
      m_touched[static_cast<std::size_t>(r.rank)] = false;
    }
    m_sums.clear();
    m_marks.clear();
  }

 private:
  struct rank_mark {
    int rank;
    std::uint64_t mark;
  };
  struct sum {
    int rank;
    int level;
    address dst, src;
    std::uint64_t bytes;
    bool copies;  // instead of reducing
  };

  // A leaf's part in scratch of the root.
  address landing_address(const primitive& p, const endpoint& leaf) {
    touch(p.root.rank);
    const endpoint landing{p.root.rank, m_builder.scratch(p.root.rank, p.bytes)};
    move(p, leaf, landing);
    return landing.at;
  }

  // A reduction that folds the leaves in order of rank, whichever the root is. Of the first two
  // either may come first, which is what the root's own part gains from.
  void reduce_in_order(primitive p) {
    std::stable_sort(p.leaves.begin(), p.leaves.end(),
                     [](const endpoint& a, const endpoint& b) { return a.rank < b.rank; });
    const auto is_own = [&](const endpoint& l) { return l.rank == p.root.rank; };
    const auto own = static_cast<std::size_t>(
        std::find_if(p.leaves.begin(), p.leaves.end(), is_own) - p.leaves.begin());
    const bool within = own < p.leaves.size() && overlap(p.leaves[own].at, p.root.at, p.bytes);
    const std::size_t first = own == 1 && within ? 1 : 0;
    // The destination of the fold may not hold a part that is folded later.
    address to = p.root.at;
    if (within && own > 1)
      to = landing_address(p, p.leaves[first]);
    else
      move(p, p.leaves[first], p.root);
    const auto add = [&](address part, bool copies) {
      m_sums.push_back({p.root.rank, p.level, copies ? p.root.at : to, part, p.bytes, copies});
    };
    for (std::size_t l = 0; l < p.leaves.size(); ++l)
      if (l != first) add(l == own ? p.leaves[l].at : landing_address(p, p.leaves[l]), false);
    if (to != p.root.at) add(to, true);
  }

  static bool overlap(address a, address b, std::uint64_t bytes) {
    return a.where == b.where && a.offset < b.offset + bytes && b.offset < a.offset + bytes;
  }

  void touch(int rank) {
    if (m_touched[static_cast<std::size_t>(rank)]) return;
    m_touched[static_cast<std::size_t>(rank)] = true;
    m_marks.push_back({rank, m_builder.scratch_mark(rank)});
  }

  void move(const primitive& p, const endpoint& from, const endpoint& to) {
    touch(from.rank);
    touch(to.rank);
    if (from.rank == to.rank) return m_builder.copy(from.rank, to.at, from.at, p.bytes);
    m_builder.send(from.rank, to.rank, from.at, p.bytes);
    m_builder.receive(to.rank, from.rank, to.at, p.bytes);
  }

  builder& m_builder;
  bool m_in_order;
  std::vector<bool> m_touched;
  std::vector<rank_mark> m_marks;
  std::vector<sum> m_sums;
};

}  // namespace

schedule lower(const composition& c, std::string algorithm) {
  builder b(c.what, c.levels);
  for (int r = 0; r < c.what.ranks; ++r)
    if (r < static_cast<int>(c.scratch.size()))
      b.scratch(r, c.scratch[static_cast<std::size_t>(r)]);
  int channels = 1;
  for (const step& s : c.steps)
    for (const primitive& p : s) channels = std::max(channels, p.channel + 1);
  std::vector<std::vector<std::vector<const primitive*>>> by_channel(
      static_cast<std::size_t>(channels));
  for (auto& list : by_channel) list.resize(c.steps.size());
  for (std::size_t s = 0; s < c.steps.size(); ++s)
    for (const primitive& p : c.steps[s])
      by_channel[static_cast<std::size_t>(p.channel)][s].push_back(&p);
  step_writer writer(b, c.in_order);
  for (int ch = 0; ch < channels; ++ch) {
    b.set_channel(ch);
    for (const auto& step_of_channel : by_channel[static_cast<std::size_t>(ch)]) {
      for (const primitive* p : step_of_channel) writer.start(*p);
      writer.finish();
    }
  }
  return b.finish(std::move(algorithm));
}

}  // namespace sucl::plan
