// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/device_kernels/plans/align_scratch.hpp"

#include "base/sizes.hpp"
#include "plan/ir/fold_run.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace sucl::core {
namespace {

using plan::instruction;
using plan::opcode;

constexpr std::uint64_t min_unit = 64, max_unit = 256 << 10, free_bytes = 1 << 20;

// A run of scratch that accesses overlap in. It moves as one.
struct slot {
  std::uint64_t begin = 0, end = 0;
  std::optional<std::uint64_t> rest;  // of the wanted offset of `begin`, by the unit
  std::uint64_t moved = 0;            // its new offset
};
using slots = std::vector<slot>;  // of a rank, ascending

// An end of a copy, a fold or a message.
struct end_of {
  std::size_t rank;
  plan::space where;
  std::uint64_t offset;
};
struct relation {
  end_of from, to;
};

bool is_access(const instruction& i) {
  return plan::moves(i.op) || i.op == opcode::send || i.op == opcode::receive;
}

template <class Visit>
void each_scratch_offset(instruction& i, const Visit& visit) {
  if (!is_access(i)) return;
  if (i.dst == plan::space::scratch && i.op != opcode::send) visit(i.dst_offset);
  if (i.src == plan::space::scratch && i.op != opcode::receive) visit(i.src_offset);
}

class aligner {
 public:
  explicit aligner(plan::schedule& s) : m_schedule(s) {}

  void run() {
    find_slots();
    m_unit = unit();
    if (m_unit < min_unit) return;
    find_relations();
    while (spread()) {
    }
    move();
  }

 private:
  template <class Visit>
  void each_access(std::size_t rank, const Visit& visit) {
    for (std::size_t c = 0; c < m_schedule.ranks[rank].channels.size(); ++c)
      for (instruction& i : m_schedule.ranks[rank].channels[c])
        if (is_access(i)) visit(c, i);
  }

  void find_slots() {
    m_slots.resize(m_schedule.ranks.size());
    for (std::size_t r = 0; r < m_slots.size(); ++r) {
      slots all;
      each_access(r, [&](std::size_t, instruction& i) {
        m_largest = std::max(m_largest, i.bytes);
        each_scratch_offset(i, [&](std::uint64_t at) { all.push_back({at, at + i.bytes, {}, 0}); });
      });
      std::sort(all.begin(), all.end(),
                [](const slot& a, const slot& b) { return a.begin < b.begin; });
      for (const slot& s : all)
        if (m_slots[r].empty() || s.begin >= m_slots[r].back().end)
          m_slots[r].push_back(s);
        else
          m_slots[r].back().end = std::max(m_slots[r].back().end, s.end);
    }
  }

  // A quarter of the largest step, but less where there are many slots, each of which may lose one.
  std::uint64_t unit() const {
    std::uint64_t most = 0, bytes = free_bytes;
    for (const slots& s : m_slots) most = std::max<std::uint64_t>(most, s.size());
    for (const plan::program& p : m_schedule.ranks)
      bytes = std::max(bytes, free_bytes + p.scratch_bytes);
    if (most == 0 || m_largest / 4 < min_unit) return 0;
    return std::min({std::bit_floor(m_largest / 4), std::bit_floor(bytes / most), max_unit});
  }

  void find_relations() {
    // Messages of a channel from one rank to another on one level match in order.
    using stream = std::tuple<std::size_t, std::size_t, std::size_t, std::uint8_t>;
    std::map<stream, std::vector<end_of>> sent;
    std::map<stream, std::size_t> received;
    for (std::size_t r = 0; r < m_slots.size(); ++r)
      each_access(r, [&](std::size_t c, instruction& i) {
        if (i.op == opcode::send)
          sent[{r, static_cast<std::size_t>(i.peer), c, i.level}].push_back(
              {r, i.src, i.src_offset});
        else if (i.op != opcode::receive)
          m_relations.push_back({{r, i.src, i.src_offset}, {r, i.dst, i.dst_offset}});
      });
    for (std::size_t r = 0; r < m_slots.size(); ++r)
      each_access(r, [&](std::size_t c, instruction& i) {
        if (i.op != opcode::receive) return;
        const stream s{static_cast<std::size_t>(i.peer), r, c, i.level};
        m_relations.push_back({sent[s][received[s]++], {r, i.dst, i.dst_offset}});
      });
  }

  slot& slot_at(std::size_t rank, std::uint64_t offset) {
    slots& all = m_slots[rank];
    return *std::prev(
        std::upper_bound(all.begin(), all.end(), offset,
                         [](std::uint64_t at, const slot& s) { return at < s.begin; }));
  }

  std::optional<std::uint64_t> rest_of(const end_of& e) {
    if (e.where != plan::space::scratch) return e.offset % m_unit;
    const slot& s = slot_at(e.rank, e.offset);
    if (!s.rest) return std::nullopt;
    return (*s.rest + (e.offset - s.begin)) % m_unit;
  }

  bool give(const end_of& e, std::uint64_t rest) {
    if (e.where != plan::space::scratch) return false;
    slot& s = slot_at(e.rank, e.offset);
    if (s.rest) return false;
    s.rest = (rest + m_unit - (e.offset - s.begin) % m_unit) % m_unit;
    return true;
  }

  // From the ends whose alignment is known to those beside them.
  bool spread() {
    bool changed = false;
    for (const relation& x : m_relations) {
      if (const auto rest = rest_of(x.from)) changed = give(x.to, *rest) || changed;
      if (const auto rest = rest_of(x.to)) changed = give(x.from, *rest) || changed;
    }
    return changed;
  }

  void move() {
    for (std::size_t r = 0; r < m_slots.size(); ++r) {
      std::uint64_t top = 0;
      for (slot& s : m_slots[r]) {
        const std::uint64_t rest = s.rest.value_or(0);
        s.moved = base::round_up(top < rest ? 0 : top - rest, m_unit) + rest;
        top = s.moved + (s.end - s.begin);
      }
      each_access(r, [&](std::size_t, instruction& i) {
        each_scratch_offset(i, [&](std::uint64_t& at) {
          const slot& s = slot_at(r, at);
          at = s.moved + (at - s.begin);
        });
      });
      m_schedule.ranks[r].scratch_bytes = top;
    }
  }

  plan::schedule& m_schedule;
  std::vector<slots> m_slots;
  std::vector<relation> m_relations;
  std::uint64_t m_largest = 0, m_unit = 0;
};

}  // namespace

plan::schedule align_scratch(plan::schedule s) {
  aligner(s).run();
  return s;
}

}  // namespace sucl::core
