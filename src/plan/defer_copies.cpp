// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/passes.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace sucl::plan {
namespace {

struct range {
  space where = space::none;
  std::uint64_t from = 0, to = 0;

  bool overlaps(const range& other) const {
    return where == other.where && from < other.to && other.from < to;
  }
};

range read_by(const instruction& i) { return {i.src, i.src_offset, i.src_offset + i.bytes}; }
range written_by(const instruction& i) { return {i.dst, i.dst_offset, i.dst_offset + i.bytes}; }

// Whether `later` sees what `copy` writes, or changes what it reads or writes.
bool follows(const instruction& later, const instruction& copy) {
  return written_by(copy).overlaps(read_by(later)) ||
         written_by(copy).overlaps(written_by(later)) || read_by(copy).overlaps(written_by(later));
}

bool reaches_into_peers(const schedule& s) {
  for (const program& p : s.ranks)
    for (const channel& c : p.channels)
      for (const instruction& i : c)
        if (is_remote(i.src) || is_remote(i.dst)) return true;
  return false;
}

// Of transfers and copies between `begin` and `end`.
void defer(channel& code, std::size_t begin, std::size_t end) {
  std::size_t hole = end;  // from here on are the copies that went there
  for (std::size_t i = end; i-- > begin;) {
    if (code[i].op != opcode::copy) continue;
    const auto at = code.begin() + static_cast<std::ptrdiff_t>(i);
    const auto last = code.begin() + static_cast<std::ptrdiff_t>(hole);
    if (std::any_of(at + 1, last, [&](const instruction& k) { return follows(k, *at); })) continue;
    std::rotate(at, at + 1, last);
    --hole;
  }
}

}  // namespace

schedule defer_copies(schedule s) {
  if (reaches_into_peers(s)) return s;
  for (program& p : s.ranks)
    for (channel& code : p.channels)
      for (std::size_t begin = 0; begin < code.size();) {
        std::size_t end = begin;
        while (end < code.size() && (is_posted(code[end].op) || code[end].op == opcode::copy))
          ++end;
        defer(code, begin, end);
        begin = std::max(end, begin + 1);
      }
  return s;
}

}  // namespace sucl::plan
