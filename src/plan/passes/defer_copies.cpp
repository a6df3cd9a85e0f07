// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/passes/passes.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sucl::plan {
namespace {

// Memory of a rank: the space above the offset, so that one order holds for all spaces.
struct range {
  std::uint64_t from = 0, to = 0;
  bool operator<(const range& other) const { return from < other.from; }
};

range range_of(space where, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t from = static_cast<std::uint64_t>(where) << 60 | offset;
  return {from, from + bytes};
}
range read_by(const instruction& i) { return range_of(i.src, i.src_offset, i.bytes); }
range written_by(const instruction& i) { return range_of(i.dst, i.dst_offset, i.bytes); }

// Sorted ranges, to find those that overlap one of them.
class ranges {
 public:
  void clear() { m_all.clear(); }
  void add(const range& r) { m_all.push_back(r); }
  void sort() {
    std::sort(m_all.begin(), m_all.end());
    m_reach.resize(m_all.size());
    std::uint64_t reach = 0;
    for (std::size_t i = 0; i < m_all.size(); ++i)
      m_reach[i] = reach = std::max(reach, m_all[i].to);
  }
  bool overlap(const range& r) const {
    const std::size_t n = before(r.to);
    return n > 0 && m_reach[n - 1] > r.from;
  }
  // Whether ranges other than `r`, which is one of them, overlap it.
  bool others_overlap(const range& r) const {
    const std::size_t own = before(r.from);
    return (own > 0 && m_reach[own - 1] > r.from) ||
           (own + 1 < m_all.size() && m_all[own + 1].from < r.to);
  }

 private:
  // How many begin before this.
  std::size_t before(std::uint64_t offset) const {
    const auto at = std::lower_bound(m_all.begin(), m_all.end(), range{offset, 0});
    return static_cast<std::size_t>(at - m_all.begin());
  }

  std::vector<range> m_all;
  std::vector<std::uint64_t> m_reach;  // the largest end of this range and those before it
};

bool reaches_into_peers(const schedule& s) {
  for (const program& p : s.ranks)
    for (const channel& c : p.channels)
      for (const instruction& i : c)
        if (is_remote(i.src) || is_remote(i.dst)) return true;
  return false;
}

class deferrer {
 public:
  // Defers the copies between `begin` and `end`.
  void defer(channel& code, std::size_t begin, std::size_t end) {
    const auto first = code.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = code.begin() + static_cast<std::ptrdiff_t>(end);
    const auto is_copy = [](const instruction& i) { return i.op == opcode::copy; };
    const auto copies = std::count_if(first, last, is_copy);
    if (copies == 0 || copies == last - first) return;
    m_reads.clear();
    m_writes.clear();
    for (auto i = first; i != last; ++i) {
      if (i->src != space::none) m_reads.add(read_by(*i));
      if (i->dst != space::none) m_writes.add(written_by(*i));
    }
    m_reads.sort();
    m_writes.sort();
    std::stable_partition(first, last,
                          [&](const instruction& i) { return !is_copy(i) || is_needed(i); });
  }

 private:
  // Whether anything else sees what the copy writes, or changes what it reads or writes. What that
  // is need not come later: a transfer that the copy races with is in no right plan.
  bool is_needed(const instruction& copy) const {
    return m_reads.overlap(written_by(copy)) || m_writes.others_overlap(written_by(copy)) ||
           m_writes.overlap(read_by(copy));
  }

  ranges m_reads, m_writes;
};

}  // namespace

schedule defer_copies(schedule s) {
  if (reaches_into_peers(s)) return s;
  deferrer d;
  for (program& p : s.ranks)
    for (channel& code : p.channels)
      for (std::size_t begin = 0; begin < code.size();) {
        std::size_t end = begin;
        while (end < code.size() && (is_posted(code[end].op) || code[end].op == opcode::copy))
          ++end;
        d.defer(code, begin, end);
        begin = std::max(end, begin + 1);
      }
  return s;
}

}  // namespace sucl::plan
