// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/passes/passes.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace sucl::plan {
namespace {

constexpr std::size_t never = ~std::size_t{0};

// An access to scratch by one instruction, and the instruction that ends it (its fence).
struct scratch_access {
  std::uint64_t* at;  // in the instruction
  std::uint64_t begin, end;
  std::size_t channel, from, until;
};

// A run of scratch that is used as one, and its life in instructions of its channel.
struct object {
  std::uint64_t begin = 0, end = 0;
  std::size_t channel = 0, from = never, until = 0;
  bool shared = false;  // by channels
  std::uint64_t packed = 0;
};

template <class Visit>
void for_each_address(instruction& i, const Visit& visit) {
  if (i.dst == space::scratch) visit(i.dst_offset);
  if (i.src == space::scratch) visit(i.src_offset);
}

// The instruction at which each posted transfer of a channel is finished for sure.
std::vector<std::size_t> ends_of(const channel& c) {
  std::vector<std::size_t> until(c.size()), open;
  for (std::size_t k = 0; k < c.size(); ++k) {
    until[k] = k;
    if (is_posted(c[k].op)) open.push_back(k);
    if (c[k].op != opcode::fence) continue;
    const std::size_t keep = std::min<std::size_t>(c[k].bytes, open.size());
    for (std::size_t n = 0; n + keep < open.size(); ++n) until[open[n]] = k;
    open.erase(open.begin(), open.end() - static_cast<std::ptrdiff_t>(keep));
  }
  for (const std::size_t k : open) until[k] = never;
  return until;
}

// All accesses, by address.
std::vector<scratch_access> accesses_of(program& p) {
  std::vector<scratch_access> all;
  for (std::size_t c = 0; c < p.channels.size(); ++c) {
    const auto until = ends_of(p.channels[c]);
    for (std::size_t k = 0; k < p.channels[c].size(); ++k) {
      instruction& i = p.channels[c][k];
      for_each_address(
          i, [&](std::uint64_t& at) { all.push_back({&at, at, at + i.bytes, c, k, until[k]}); });
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return all;
}

std::vector<object> objects_of(const std::vector<scratch_access>& all) {
  std::vector<object> list;
  for (const scratch_access& a : all) {
    if (list.empty() || a.begin >= list.back().end)
      list.push_back({a.begin, a.end, a.channel, a.from, a.until, false, 0});
    object& o = list.back();
    o.end = std::max(o.end, a.end);
    o.shared = o.shared || o.channel != a.channel;
    o.from = std::min(o.from, a.from);
    o.until = std::max(o.until, a.until);
  }
  for (object& o : list)
    if (o.shared) o.channel = o.from = 0, o.until = never;
  return list;
}

// Scratch from `base` on, given out first fit.
class arena {
 public:
  explicit arena(std::uint64_t base) : m_top(base) {}

  std::uint64_t take(std::uint64_t bytes) {
    for (auto hole = m_holes.begin(); hole != m_holes.end(); ++hole) {
      if (hole->second < bytes) continue;
      const std::uint64_t at = hole->first, left = hole->second - bytes;
      m_holes.erase(hole);
      if (left > 0) m_holes[at + bytes] = left;
      return at;
    }
    std::uint64_t at = m_top;
    if (!m_holes.empty()) {  // a hole at the top only has to grow
      const auto last = std::prev(m_holes.end());
      if (last->first + last->second == m_top) {
        at = last->first;
        m_holes.erase(last);
      }
    }
    m_top = at + bytes;
    return at;
  }

  void give_back(std::uint64_t at, std::uint64_t bytes) {
    auto hole = m_holes.emplace(at, bytes).first;
    const auto next = std::next(hole);
    if (next != m_holes.end() && hole->first + hole->second == next->first) {
      hole->second += next->second;
      m_holes.erase(next);
    }
    if (hole == m_holes.begin()) return;
    const auto before = std::prev(hole);
    if (before->first + before->second != hole->first) return;
    before->second += hole->second;
    m_holes.erase(hole);
  }

  std::uint64_t top() const { return m_top; }

 private:
  std::map<std::uint64_t, std::uint64_t> m_holes;  // begin and length, none touching another
  std::uint64_t m_top;
};

// Gives every object its offset, in the order of first use. Channels have no time in common, so
// each has its part of the scratch; what they share comes first and stays.
std::uint64_t assign_offsets(std::vector<object>& list, std::uint64_t unit) {
  std::vector<object*> order;
  for (object& o : list) order.push_back(&o);
  std::stable_sort(order.begin(), order.end(), [](const object* a, const object* b) {
    return std::tie(b->shared, a->channel, a->from) < std::tie(a->shared, b->channel, b->from);
  });
  const auto length = [&](const object* o) { return (o->end - o->begin + unit - 1) / unit * unit; };
  const auto ends_later = [](const object* a, const object* b) {
    return std::tie(a->until, a->packed) > std::tie(b->until, b->packed);
  };
  std::vector<const object*> alive;  // a heap: the object that ends first is in front
  arena space_left(0);
  const object* last = nullptr;
  for (object* o : order) {
    if (last && (o->shared != last->shared || o->channel != last->channel)) {
      space_left = arena(space_left.top());
      alive.clear();
    }
    last = o;
    while (!alive.empty() && alive.front()->until < o->from) {
      space_left.give_back(alive.front()->packed, length(alive.front()));
      std::pop_heap(alive.begin(), alive.end(), ends_later);
      alive.pop_back();
    }
    o->packed = space_left.take(length(o));
    alive.push_back(o);
    std::push_heap(alive.begin(), alive.end(), ends_later);
  }
  return space_left.top();
}

}  // namespace

schedule pack_scratch(schedule s) {
  const std::uint64_t unit = std::lcm(s.what.element_bytes, std::uint64_t{16});
  std::vector<bool> remote(s.ranks.size(), false);  // scratch that a peer names stays as it is
  for (const program& p : s.ranks)
    for (const channel& c : p.channels)
      for (const instruction& i : c)
        if (i.dst == space::peer_scratch || i.src == space::peer_scratch)
          remote[static_cast<std::size_t>(i.peer)] = true;
  for (std::size_t r = 0; r < s.ranks.size(); ++r) {
    program& p = s.ranks[r];
    if (remote[r] || p.scratch_bytes == 0) continue;
    const std::vector<scratch_access> accesses = accesses_of(p);
    std::vector<object> objects = objects_of(accesses);
    const std::uint64_t size = assign_offsets(objects, unit);
    if (size >= p.scratch_bytes) continue;
    auto o = objects.cbegin();
    for (const scratch_access& a : accesses) {
      while (std::next(o) != objects.cend() && a.begin >= std::next(o)->begin) ++o;
      *a.at += o->packed - o->begin;
    }
    p.scratch_bytes = size;
  }
  return s;
}

}  // namespace sucl::plan
