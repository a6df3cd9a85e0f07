// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/ir/traffic.hpp"

#include <algorithm>
#include <tuple>

namespace sucl::plan {
namespace {

bool same_way(const flow& a, const flow& b) {
  return a.from == b.from && a.to == b.to && a.level == b.level;
}

// Adds up flows with the same source and destination.
void merge(std::vector<flow>& list) {
  std::sort(list.begin(), list.end(), [](const flow& a, const flow& b) {
    return std::tie(a.from, a.to, a.level) < std::tie(b.from, b.to, b.level);
  });
  std::size_t kept = 0;
  for (const flow& f : list) {
    if (kept > 0 && same_way(list[kept - 1], f)) {
      list[kept - 1].bytes += f.bytes;
      list[kept - 1].messages += f.messages;
    } else {
      list[kept++] = f;
    }
  }
  list.resize(kept);
}

}  // namespace

flow flow_of(const instruction& i, int rank) {
  const bool outward = i.op == opcode::send || is_remote(i.dst);
  const bool inward = i.op != opcode::receive && is_remote(i.src);
  if (!outward && !inward) return {-1, -1, 0, 0, 0};
  return {outward ? rank : i.peer, outward ? i.peer : rank, i.level, i.bytes, 1};
}

std::vector<flow> traffic(const schedule& s) {
  std::vector<flow> all;
  for (std::size_t rank = 0; rank < s.ranks.size(); ++rank) {
    std::vector<flow> own;
    for (const channel& c : s.ranks[rank].channels)
      for (const instruction& i : c)
        if (const flow f = flow_of(i, static_cast<int>(rank)); f.from >= 0) own.push_back(f);
    merge(own);
    all.insert(all.end(), own.begin(), own.end());
  }
  merge(all);
  return all;
}

}  // namespace sucl::plan
