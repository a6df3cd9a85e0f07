// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/verify/order.hpp"

#include <algorithm>
#include <numeric>

namespace sucl::plan {
namespace {

constexpr std::size_t max_updates = 16;  // beyond a base, before there is a new one
constexpr std::size_t max_merged = 32;   // bases that a thread remembers
constexpr std::size_t min_shared = 128;  // below, comparing costs more than it saves
constexpr std::size_t slots = 4096;      // for bases that are known

// Bytes of the clock of a thread in a group of so many.
constexpr std::uint64_t clock_bytes(std::uint32_t width) {
  return width == 1 ? 0 : 2 * std::uint64_t{width} * sizeof(std::uint32_t);
}

// Disjoint sets of ranks.
class sets {
 public:
  explicit sets(std::size_t n) : m_parent(n) {
    std::iota(m_parent.begin(), m_parent.end(), std::uint32_t{0});
  }
  std::uint32_t find(std::uint32_t i) {
    while (m_parent[i] != i) i = m_parent[i] = m_parent[m_parent[i]];
    return i;
  }
  void join(std::uint32_t a, std::uint32_t b) {
    a = find(a);
    b = find(b);
    m_parent[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::uint32_t> m_parent;
};

}  // namespace

clocks::clocks(const schedule& s, proof_cost& cost) : m_cost(cost) {
  for (const program& p : s.ranks) {
    m_first.push_back(static_cast<std::uint32_t>(m_threads.size()));
    m_threads.resize(m_threads.size() + p.channels.size());
  }
  make_groups(s);
}

void clocks::make_groups(const schedule& s) {
  const std::size_t ranks = s.ranks.size();
  sets joined(ranks);
  m_shared.assign(ranks, false);
  for (std::size_t r = 0; r < ranks; ++r) {
    for (const plan::channel& c : s.ranks[r].channels) {
      for (const instruction& i : c) {
        if (!is_remote(i.dst) && !is_remote(i.src)) continue;
        const auto peer = static_cast<std::uint32_t>(i.peer);
        m_shared[r] = m_shared[peer] = true;
        joined.join(static_cast<std::uint32_t>(r), peer);
      }
    }
  }
  // Within a group: the channels of its ranks, then, where several ranks share, their starts.
  std::vector<std::uint32_t> width(ranks, 0);
  const auto channels_of = [&](std::size_t r) {
    return static_cast<std::uint32_t>(s.ranks[r].channels.size());
  };
  m_start.assign(ranks, 0);
  for (std::size_t r = 0; r < ranks; ++r) {
    std::uint32_t& w = width[joined.find(static_cast<std::uint32_t>(r))];
    for (std::uint32_t c = 0; c < channels_of(r); ++c) m_threads[m_first[r] + c].index = w++;
    if (m_shared[r]) m_start[r] = w++;
  }
  // Charges the memory before it is allocated.
  for (std::size_t r = 0; r < ranks; ++r)
    m_cost.take_bytes(channels_of(r) *
                      clock_bytes(width[joined.find(static_cast<std::uint32_t>(r))]));
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::uint32_t group = joined.find(static_cast<std::uint32_t>(r));
    m_group.push_back(group);
    for (std::uint32_t c = 0; c < channels_of(r); ++c) {
      thread& t = m_threads[m_first[r] + c];
      t.group = group;
      t.width = width[group];
      if (t.width == 1) continue;
      t.clock.assign(2 * std::size_t{t.width}, 0);
      t.common = share(t.clock);
      if (m_shared[r]) raise_entry(t, m_start[r], 1);
    }
  }
}

// The start of a rank has the number threads() + rank.
access clocks::start_of(int rank) const {
  if (is_private(rank)) return {};
  return {threads() + static_cast<std::uint32_t>(rank), 1};
}

access clocks::now(std::uint32_t t) {
  m_threads[t].changed = true;
  return {t, m_threads[t].epoch};
}

access clocks::posting(std::uint32_t t, std::uint32_t ticket) {
  return {t, access::posted | ticket};
}

void clocks::finish(std::uint32_t t, std::uint32_t count) {
  m_threads[t].finished = count;
  m_threads[t].changed = true;
}

bool clocks::covered(const thread& me, access past) const {
  if (past.thread >= threads()) return me.clock[m_start[past.thread - threads()]] >= past.stamp;
  const thread& other = m_threads[past.thread];
  if ((past.stamp & access::posted) != 0)
    return me.clock[me.width + other.index] > (past.stamp & ~access::posted);
  return me.clock[other.index] >= past.stamp;
}

// A base of its own for this content.
clocks::base clocks::keep(const std::vector<std::uint32_t>& clock) {
  const std::uint64_t bytes = clock.size() * sizeof clock[0];
  m_cost.take_bytes(bytes);
  return {new std::vector<std::uint32_t>(clock),
          [&cost = m_cost, bytes](const std::vector<std::uint32_t>* content) {
            cost.give_bytes(bytes);
            delete content;
          }};
}

// The base of this content, if another thread has the same.
clocks::base clocks::share(const std::vector<std::uint32_t>& clock) {
  m_cost.take_steps(clock.size());
  if (clock.size() <= min_shared) return keep(clock);
  if (m_bases.empty()) m_bases.resize(slots);
  std::uint64_t h = 0;
  for (const std::uint32_t value : clock) h = (h + value + 1) * 0x9fb21c651e98df25ull;
  auto& slot = m_bases[(h >> 32) % slots];
  base known = slot.lock();
  if (known && *known == clock) return known;
  known = keep(clock);
  slot = known;
  return known;
}

void clocks::raise_entry(thread& me, std::uint32_t index, std::uint32_t value) {
  if (me.clock[index] >= value) return;
  me.clock[index] = value;
  me.updates.push_back(index);
}

void clocks::merge(thread& me, const base& other) {
  if (std::find(me.merged.begin(), me.merged.end(), other) != me.merged.end()) return;
  m_cost.take_steps(other->size());
  for (std::uint32_t i = 0; i < other->size(); ++i) raise_entry(me, i, (*other)[i]);
  if (me.merged.size() == max_merged) me.merged.erase(me.merged.begin());
  me.merged.push_back(other);
}

clocks::snapshot clocks::release(std::uint32_t t) {
  thread& me = m_threads[t];
  if (me.width == 1) return nullptr;
  if (!me.changed) return me.published;
  if (me.updates.size() > max_updates) {
    me.common = share(me.clock);
    me.updates.clear();
  }
  raise_entry(me, me.index, me.epoch++);
  raise_entry(me, me.width + me.index, me.finished);
  m_cost.take_steps(me.updates.size());
  std::sort(me.updates.begin(), me.updates.end());
  me.updates.erase(std::unique(me.updates.begin(), me.updates.end()), me.updates.end());
  const auto p = std::make_shared<publication>();
  p->common = me.common;
  for (const std::uint32_t index : me.updates) p->updates.emplace_back(index, me.clock[index]);
  me.published = p;
  me.changed = false;
  return me.published;
}

void clocks::acquire(std::uint32_t t, const snapshot& s) {
  thread& me = m_threads[t];
  if (!s || me.width == 1) return;
  if (s->common != me.common) merge(me, s->common);
  for (const auto& [index, value] : s->updates) raise_entry(me, index, value);
  me.changed = true;
}

void clocks::join(int rank) {
  const std::uint32_t first = m_first[static_cast<std::size_t>(rank)];
  const std::uint32_t end = rank + 1 < static_cast<int>(m_first.size())
                                ? m_first[static_cast<std::size_t>(rank) + 1]
                                : threads();
  for (std::uint32_t t = first + 1; t < end; ++t) acquire(first, release(t));
}

}  // namespace sucl::plan
