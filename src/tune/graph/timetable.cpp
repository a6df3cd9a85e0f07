// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/graph/timetable.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>

namespace sucl::tune {
namespace {

class scheduler {
 public:
  scheduler(const sim::machine& m, sim::ways& ways, const std::vector<tree>& trees,
            const std::vector<parcel>& parcels, std::vector<double>& busy)
      : m_machine(m), m_trees(trees), m_parcels(parcels), m_busy(busy) {
    m_busy.resize(m.wires.links.size());
    m_waiting.resize(m_busy.size());
    m_blocked.resize(m_busy.size());
    m_dirty.resize(m_busy.size());
    m_left.resize(m_busy.size());
    for (const tree& t : trees) describe(t, ways);
    for (const parcel& p : parcels)
      for (const step& s : m_steps[p.tree])
        for (const std::uint32_t l : s.by->links)
          m_left[l] += static_cast<double>(p.bytes) * s.per_byte;
  }

  timetable run() {
    for (std::uint32_t p = 0; p < m_parcels.size(); ++p)
      m_events.push({m_parcels[p].ready, p, at_root, none});
    while (!m_events.empty()) {
      const double now = m_events.top().at;
      while (!m_events.empty() && m_events.top().at == now) {
        const event e = m_events.top();
        m_events.pop();
        if (e.link != none)
          release(e.link);
        else
          arrive(e.parcel, e.hop);
      }
      std::vector<std::uint32_t> dirty = std::move(m_to_try);
      m_to_try.clear();
      // Those that have most left to do first.
      std::sort(dirty.begin(), dirty.end(), [&](std::uint32_t a, std::uint32_t b) {
        return m_left[a] != m_left[b] ? m_left[a] > m_left[b] : a < b;
      });
      for (const std::uint32_t l : dirty) {
        m_dirty[l] = false;
        try_link(l, now);
      }
    }
    return std::move(m_made);
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint32_t at_root = none - 1;

  // A hop of a tree: its way, what follows it, and how long that takes per byte and without any.
  struct step {
    const sim::way* by = nullptr;
    double per_byte = 0;  // of its own way
    double behind = 0, behind_per_byte = 0;
    std::vector<std::uint32_t> next;  // hops from where it ends
  };
  struct event {
    double at;
    std::uint32_t parcel, hop, link;
    friend bool operator<(const event& a, const event& b) {
      return std::tie(a.at, a.link, a.parcel, a.hop) > std::tie(b.at, b.link, b.parcel, b.hop);
    }
  };
  // What waits for a link, the most urgent first: time behind it, then its place in rotation.
  using key = std::tuple<double, std::uint64_t, int, std::uint32_t, std::uint32_t>;

  void describe(const tree& t, sim::ways& ways) {
    std::vector<step> steps(t.hops.size());
    std::vector<std::uint32_t> first;
    std::vector<std::uint32_t> by_rank(index(m_ranks_of(t)), none);
    for (std::uint32_t h = 0; h < t.hops.size(); ++h) {
      steps[h].by = ways.between(t.hops[h].from, t.hops[h].to);
      for (const std::uint32_t l : steps[h].by->links)
        steps[h].per_byte = std::max(steps[h].per_byte, 1 / m_machine.wires.links[l].bandwidth);
      const std::uint32_t before = by_rank[index(t.hops[h].from)];
      (before == none ? first : steps[before].next).push_back(h);
      by_rank[index(t.hops[h].to)] = h;
    }
    for (std::size_t h = steps.size(); h-- > 0;) {
      double children = 0;
      for (const std::uint32_t n : steps[h].next) {
        steps[h].behind = std::max(steps[h].behind, steps[n].behind + steps[n].by->latency);
        steps[h].behind_per_byte = std::max(steps[h].behind_per_byte, steps[n].behind_per_byte);
        children += steps[n].per_byte;  // one after another
      }
      steps[h].behind_per_byte += children;
    }
    m_steps.push_back(std::move(steps));
    m_first.push_back(std::move(first));
  }
  static int m_ranks_of(const tree& t) {
    int most = t.root;
    for (const hop& h : t.hops) most = std::max({most, h.from, h.to});
    return most + 1;
  }

  // A rank has got a parcel: it may send it on.
  void arrive(std::uint32_t p, std::uint32_t h) {
    const std::uint32_t t = m_parcels[p].tree;
    for (const std::uint32_t n : h == at_root ? m_first[t] : m_steps[t][h].next) {
      const step& s = m_steps[t][n];
      const auto bytes = static_cast<double>(m_parcels[p].bytes);
      const hop& at = m_trees[t].hops[n];
      const int turn = (at.to - at.from + 65536) % 65536;
      const std::uint32_t l = s.by->links.front();
      m_waiting[l][s.by->links.back()].emplace(-(s.behind + bytes * s.behind_per_byte),
                                               m_parcels[p].offset, turn, p, n);
      look_at(l);
    }
  }

  void look_at(std::uint32_t l) {
    if (m_dirty[l]) return;
    m_dirty[l] = true;
    m_to_try.push_back(l);
  }

  void release(std::uint32_t l) {
    look_at(l);
    for (const std::uint32_t other : m_blocked[l]) look_at(other);
    m_blocked[l].clear();
  }

  // Starts what is most urgent of all that can start: by what is behind it, or by all that its last
  // link has still to do.
  void try_link(std::uint32_t l, double now) {
    if (m_busy[l] > now) return;
    const key* best = nullptr;
    std::uint32_t by = 0;
    double most = -1;
    for (auto& [last, queue] : m_waiting[l]) {
      if (queue.empty()) continue;
      const key& first = *queue.begin();
      const step& s = m_steps[m_parcels[std::get<3>(first)].tree][std::get<4>(first)];
      std::uint32_t taken = none;
      for (const std::uint32_t other : s.by->links)
        if (m_busy[other] > now) taken = other;
      if (taken != none) {
        auto& list = m_blocked[taken];
        if (list.empty() || list.back() != l) list.push_back(l);
        continue;
      }
      const double urgency = m_left[last] - std::get<0>(first);
      if (urgency < most || (urgency == most && !(first < *best))) continue;
      best = &first;
      by = last;
      most = urgency;
    }
    if (!best) return;
    const key chosen = *best;
    m_waiting[l][by].erase(chosen);
    start(std::get<3>(chosen), std::get<4>(chosen), now);
  }

  void start(std::uint32_t p, std::uint32_t h, double now) {
    const step& s = m_steps[m_parcels[p].tree][h];
    const double until = now + static_cast<double>(m_parcels[p].bytes) * s.per_byte;
    for (const std::uint32_t l : s.by->links) {
      m_busy[l] = until;
      m_left[l] -= until - now;
      m_events.push({until, 0, 0, l});
    }
    m_made.push_back({p, h, s.by->links.front(), s.by->links.back(), now, until + s.by->latency});
    m_events.push({until + s.by->latency, p, h, none});
  }

  const sim::machine& m_machine;
  const std::vector<tree>& m_trees;
  const std::vector<parcel>& m_parcels;
  std::vector<double>& m_busy;
  std::vector<std::vector<step>> m_steps;  // by tree and hop
  std::vector<std::vector<std::uint32_t>> m_first;
  std::vector<std::map<std::uint32_t, std::set<key>>> m_waiting;  // by first and last link
  std::vector<double> m_left;                                     // by link: seconds to carry
  std::vector<std::vector<std::uint32_t>> m_blocked;  // by link: those that wait for it too
  std::vector<bool> m_dirty;
  std::vector<std::uint32_t> m_to_try;
  std::priority_queue<event> m_events;
  timetable m_made;
};

}  // namespace

timetable schedule_trees(const sim::machine& m, sim::ways& ways, const std::vector<tree>& trees,
                         const std::vector<parcel>& parcels, std::vector<double>& busy) {
  return scheduler(m, ways, trees, parcels, busy).run();
}

}  // namespace sucl::tune
