// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "plan/compose/composition.hpp"

#include <algorithm>
#include <set>

namespace sucl::plan {
namespace {

using offsets = std::set<std::uint64_t>;

// Where data is cut, by rank and space: wherever a primitive that touches it begins or ends,
// carried through all primitives to the other ends until nothing changes.
class refinement {
 public:
  explicit refinement(const composition& c) : m_cuts(static_cast<std::size_t>(c.what.ranks) * 3) {
    for (const step& s : c.steps)
      for (const primitive& p : s)
        for_each_end(p, [&](const endpoint& e) {
          cuts(e).insert(e.at.offset);
          cuts(e).insert(e.at.offset + p.bytes);
        });
    for (bool changed = true; changed;) {
      changed = false;
      for (const step& s : c.steps)
        for (const primitive& p : s) changed = carry(p) || changed;
    }
  }

  // The cuts inside a primitive, from its first byte; with 0 and its length.
  std::vector<std::uint64_t> of(const primitive& p) {
    offsets all = inside(p);
    all.insert(0);
    all.insert(p.bytes);
    return {all.begin(), all.end()};
  }

 private:
  template <class Visit>
  static void for_each_end(const primitive& p, const Visit& visit) {
    visit(p.root);
    for (const endpoint& l : p.leaves) visit(l);
  }

  offsets& cuts(const endpoint& e) {
    return m_cuts[static_cast<std::size_t>(e.rank) * 3 + static_cast<std::size_t>(e.at.where) - 1];
  }

  offsets inside(const primitive& p) {
    offsets all;
    for_each_end(p, [&](const endpoint& e) {
      const offsets& own = cuts(e);
      for (auto i = own.upper_bound(e.at.offset); i != own.end() && *i < e.at.offset + p.bytes; ++i)
        all.insert(*i - e.at.offset);
    });
    return all;
  }

  bool carry(const primitive& p) {
    bool changed = false;
    const offsets all = inside(p);
    for_each_end(p, [&](const endpoint& e) {
      for (const std::uint64_t o : all) changed = cuts(e).insert(e.at.offset + o).second || changed;
    });
    return changed;
  }

  std::vector<offsets> m_cuts;
};

}  // namespace

primitive part_of(const primitive& p, std::uint64_t offset, std::uint64_t bytes) {
  primitive part = p;
  part.bytes = bytes;
  part.root.at.offset += offset;
  for (endpoint& l : part.leaves) l.at.offset += offset;
  return part;
}

composition pipeline(composition c, int depth) {
  if (depth < 1)
    base::fail(errc::invalid_argument, "a pipeline of " + std::to_string(depth) + " channels",
               "Give 1 or more.");
  if (depth == 1) return c;
  std::vector<step> steps;
  // Within one step nothing depends on anything: it needs no common cuts.
  const bool alone = c.steps.size() == 1;
  refinement refined(alone ? composition{c.what, {}, {}, {}} : c);
  for (const step& s : c.steps) {
    steps.emplace_back();
    for (const primitive& p : s) {
      const auto pieces = alone ? std::vector<std::uint64_t>{0, p.bytes} : refined.of(p);
      for (std::size_t k = 0; k + 1 < pieces.size(); ++k) {
        const auto cuts = cut_evenly(pieces[k + 1] - pieces[k], c.what.element_bytes, depth);
        for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
          if (cuts[i] == cuts[i + 1]) continue;
          steps.back().push_back(part_of(p, pieces[k] + cuts[i], cuts[i + 1] - cuts[i]));
          steps.back().back().channel = static_cast<int>(i);
        }
      }
    }
  }
  c.steps = std::move(steps);
  return c;
}

}  // namespace sucl::plan
