// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/ir/fold_run.hpp"
#include "plan/passes/passes.hpp"

#include <algorithm>

namespace sucl::plan {
namespace {

struct stretch {
  std::size_t rank;
  std::uint64_t begin, end;
  bool meets(const stretch& o) const { return rank == o.rank && begin < o.end && o.begin < end; }
};

std::size_t owner(space where, std::size_t rank, std::int32_t peer) {
  return is_remote(where) ? static_cast<std::size_t>(peer) : rank;
}

// Scratch that holds something else than copies of inputs at some time.
std::vector<stretch> worked_on(const schedule& s) {
  std::vector<stretch> all;
  for (std::size_t r = 0; r < s.ranks.size(); ++r)
    for (const channel& c : s.ranks[r].channels)
      for (const instruction& i : c) {
        if (!moves(i.op) && i.op != opcode::receive) continue;
        const bool copies_input =
            moves(i.op) && i.op != opcode::reduce && local_form(i.src) == space::send;
        if (local_form(i.dst) != space::scratch || copies_input) continue;
        all.push_back({owner(i.dst, r, i.peer), i.dst_offset, i.dst_offset + i.bytes});
      }
  return all;
}

}  // namespace

bool folds_once(const schedule& s) {
  const std::vector<stretch> worked = worked_on(s);
  const auto is_input = [&](const instruction& i, std::size_t rank) {
    if (local_form(i.src) == space::send) return true;
    if (local_form(i.src) != space::scratch) return false;
    const stretch p{owner(i.src, rank, i.peer), i.src_offset, i.src_offset + i.bytes};
    return std::none_of(worked.begin(), worked.end(), [&](const stretch& w) { return w.meets(p); });
  };
  // A fold is a copy and the reductions that follow it to the same address.
  for (std::size_t r = 0; r < s.ranks.size(); ++r)
    for (const channel& c : s.ranks[r].channels)
      for (std::size_t i = 0; i < c.size(); ++i) {
        if (c[i].op != opcode::reduce) continue;
        if (i == 0) return false;
        const instruction& before = c[i - 1];
        if (!goes_on(before, c[i]) || !is_input(before, r) || !is_input(c[i], r)) return false;
      }
  return true;
}

}  // namespace sucl::plan
