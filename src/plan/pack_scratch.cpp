// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/passes.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace sucl::plan {
namespace {

constexpr std::size_t for_ever = ~std::size_t{0};

// An access to scratch by one instruction, and the instruction that ends it (its fence).
struct scratch_access {
  std::uint64_t begin, end;
  std::size_t channel, from, until;
};

// A run of scratch that is used as one, and its life in instructions of its channel.
struct object {
  std::uint64_t begin = 0, end = 0;
  std::size_t channel = 0, from = for_ever, until = 0;
  bool shared = false;  // by channels
  std::uint64_t packed = 0;
};

template <class Visit>
void for_each_place(instruction& i, const Visit& visit) {
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
  for (const std::size_t k : open) until[k] = for_ever;
  return until;
}

std::vector<object> objects_of(program& p) {
  std::vector<scratch_access> all;
  for (std::size_t c = 0; c < p.channels.size(); ++c) {
    const auto until = ends_of(p.channels[c]);
    for (std::size_t k = 0; k < p.channels[c].size(); ++k) {
      instruction& i = p.channels[c][k];
      for_each_place(i, [&](std::uint64_t& at) {
        all.push_back({at, at + i.bytes, c, k, until[k]});
      });
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
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
    if (o.shared) o.channel = o.from = 0, o.until = for_ever;
  return list;
}

// First fit in order of birth: each object goes to the lowest place where nothing lives with it.
// Channels have no time in common, so each has its part of the scratch.
std::uint64_t place_all(std::vector<object>& list, std::uint64_t unit) {
  std::vector<object*> order;
  for (object& o : list) order.push_back(&o);
  std::stable_sort(order.begin(), order.end(), [](const object* a, const object* b) {
    return std::tie(b->shared, a->channel, a->from) < std::tie(a->shared, b->channel, b->from);
  });
  std::vector<object*> alive;  // by place
  std::uint64_t base = 0, size = 0;
  const object* last = nullptr;
  for (object* o : order) {
    if (last && (o->shared != last->shared || o->channel != last->channel)) {
      base = size;
      alive.clear();
    }
    last = o;
    std::erase_if(alive, [&](const object* other) { return other->until < o->from; });
    const std::uint64_t bytes = (o->end - o->begin + unit - 1) / unit * unit;
    std::uint64_t at = base;
    auto next = alive.begin();
    for (; next != alive.end() && at + bytes > (*next)->packed; ++next)
      at = (*next)->packed + ((*next)->end - (*next)->begin + unit - 1) / unit * unit;
    o->packed = at;
    alive.insert(next, o);
    size = std::max(size, at + bytes);
  }
  return size;
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
    std::vector<object> objects = objects_of(p);
    const std::uint64_t size = place_all(objects, unit);
    if (size >= p.scratch_bytes) continue;
    for (channel& c : p.channels) {
      for (instruction& i : c) {
        for_each_place(i, [&](std::uint64_t& at) {
          const auto o = std::prev(std::upper_bound(
              objects.begin(), objects.end(), at,
              [](std::uint64_t offset, const object& x) { return offset < x.begin; }));
          at += o->packed - o->begin;
        });
      }
    }
    p.scratch_bytes = size;
  }
  return s;
}

}  // namespace sucl::plan
