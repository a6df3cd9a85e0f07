// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "tune/graph/timetable.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <queue>
#include <tuple>

namespace sucl::tune {
namespace {

// Of the shortest transfer: what happens within so little time is dealt with at once.
constexpr double at_once = 1e-4;

class scheduler {
 public:
  scheduler(const sim::machine& m, sim::paths& paths, const std::vector<tree>& trees,
            const std::vector<parcel>& parcels, std::vector<double>& busy)
      : m_machine(m), m_trees(trees), m_parcels(parcels), m_busy(busy) {
    m_busy.resize(m.wires.links.size());
    m_waiting.resize(m_busy.size());
    m_blocked.resize(m_busy.size());
    m_dirty.resize(m_busy.size());
    m_left.resize(m_busy.size());
    m_queued.resize(m_busy.size());
    m_ports.resize(2 * m_busy.size());
    m_bytes.resize(trees.size());
    for (const parcel& p : parcels) m_size = std::max(m_size, static_cast<double>(p.bytes));
    for (const parcel& p : parcels) m_bytes[p.tree] = std::max(m_bytes[p.tree], size_of(p));
    for (std::uint32_t t = 0; t < trees.size(); ++t) describe(t, paths);
    m_moment = std::numeric_limits<double>::infinity();
    for (const std::vector<step>& steps : m_steps)
      for (const step& s : steps) m_moment = std::min(m_moment, s.per_byte * m_size * at_once);
    for (const parcel& p : parcels)
      for (const step& s : m_steps[p.tree])
        for (const std::uint32_t l : s.by->links) m_left[l] += size_of(p) * s.per_byte;
  }

  timetable run() {
    for (std::uint32_t p = 0; p < m_parcels.size(); ++p)
      m_events.push({m_parcels[p].ready, p, at_root, none});
    while (!m_events.empty()) {
      double now = m_events.top().at;
      const double latest = now + m_moment;
      while (!m_events.empty() && m_events.top().at <= latest) {
        const event e = m_events.top();
        now = e.at;
        m_events.pop();
        if (e.link != none)
          release(e.link);
        else
          arrive(e.parcel, e.hop);
      }
      while (!m_to_try.empty()) {
        std::vector<std::uint32_t> dirty = std::move(m_to_try);
        m_to_try.clear();
        for (const std::uint32_t l : dirty) m_dirty[l] = false;
        start_all(dirty, now);
      }
    }
    return std::move(m_made);
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint32_t at_root = none - 1;

  // What is behind a hop: a link that will carry the same data, and how long it takes until then.
  struct later {
    std::uint32_t link = 0;
    double after = 0;
  };
  // A hop of a tree: its path, what follows it, and the parcels that wait for it.
  struct step {
    const sim::path* by = nullptr;
    double per_byte = 0;              // of its own path
    std::vector<std::uint32_t> next;  // hops from where it ends
    std::vector<later> behind;
    std::deque<std::uint32_t> parcels;
    std::uint32_t tree = 0, hop = 0;
    int turn = 0;
  };
  struct event {
    double at;
    std::uint32_t parcel, hop, link;
    friend bool operator<(const event& a, const event& b) {
      return std::tie(a.at, a.link, a.parcel, a.hop) > std::tie(b.at, b.link, b.parcel, b.hop);
    }
  };

  // Parcels that differ by an element take the same time here: links are then free at once, and
  // more of what waits for them can be matched.
  double size_of(const parcel& p) const {
    constexpr double alike = 0.99;
    const auto bytes = static_cast<double>(p.bytes);
    return bytes > alike * m_size ? m_size : bytes;
  }

  void describe(std::uint32_t number, sim::paths& paths) {
    const tree& t = m_trees[number];
    std::vector<step> steps(t.hops.size());
    std::vector<std::uint32_t> first;
    std::map<int, std::uint32_t> by_rank;
    for (std::uint32_t h = 0; h < t.hops.size(); ++h) {
      step& s = steps[h];
      s.by = paths.between(t.hops[h].from, t.hops[h].to);
      s.tree = number;
      s.hop = h;
      s.turn = (t.hops[h].to - t.hops[h].from + 65536) % 65536;
      for (const std::uint32_t l : s.by->links)
        s.per_byte = std::max(s.per_byte, 1 / m_machine.wires.links[l].bandwidth);
      const auto before = by_rank.find(t.hops[h].from);
      (before == by_rank.end() ? first : steps[before->second].next).push_back(h);
      by_rank[t.hops[h].to] = h;
    }
    std::map<std::uint32_t, double> after;
    for (std::size_t h = steps.size(); h-- > 0;) {
      step& s = steps[h];
      const double own = s.by->latency + s.per_byte * m_bytes[number];
      after.clear();
      for (const std::uint32_t n : s.next) {
        for (const std::uint32_t l : steps[n].by->links) after.emplace(l, own);
        for (const later& x : steps[n].behind) {
          double& a = after[x.link];
          a = std::max(a, own + x.after);
        }
      }
      for (const auto& [l, a] : after) s.behind.push_back({l, a});
    }
    m_steps.push_back(std::move(steps));
    m_first.push_back(std::move(first));
  }

  // A rank has got a parcel: it may send it on.
  void arrive(std::uint32_t p, std::uint32_t h) {
    const std::uint32_t t = m_parcels[p].tree;
    for (const std::uint32_t n : h == at_root ? m_first[t] : m_steps[t][h].next) {
      step& s = m_steps[t][n];
      const std::uint32_t l = s.by->links.front();
      if (s.parcels.empty()) m_waiting[l].push_back(&s);
      s.parcels.push_back(p);
      for (const std::uint32_t x : s.by->links) m_queued[x] += size_of(m_parcels[p]) * s.per_byte;
      mark_dirty(l);
    }
  }

  void mark_dirty(std::uint32_t l) {
    if (m_dirty[l]) return;
    m_dirty[l] = true;
    m_to_try.push_back(l);
  }

  void release(std::uint32_t l) {
    mark_dirty(l);
    for (const std::uint32_t other : m_blocked[l]) mark_dirty(other);
    m_blocked[l].clear();
  }

  // For how long others would be busy with what is not there yet, from now: those first that are
  // the first to run out of work for which they have no time to spare.
  double urgency(const step& s) const {
    double most = 0;
    for (const later& x : s.behind)
      most = std::max(most, x.after + m_left[x.link] - m_queued[x.link]);
    return most;
  }

  // What could start now, by the link by which it arrives.
  struct offer {
    std::uint32_t last;
    double urgency;
    step* what;
  };
  static bool before(const offer& a, const offer& b) {
    if (a.urgency != b.urgency) return a.urgency > b.urgency;
    return std::tie(a.what->parcels.front(), a.what->turn, a.what->tree, a.what->hop) <
           std::tie(b.what->parcels.front(), b.what->turn, b.what->tree, b.what->hop);
  }

  // A link that is free: it sends, or something arrives by it.
  struct port {
    bool used = false, sends = false;
    double weight = 0;
    std::uint32_t partner = none;
    std::vector<offer> offers;           // of a port that sends
    std::vector<std::uint32_t> senders;  // of one that receives
    int visited = 0;
  };
  // Ports of the links that send come first, then those by which something arrives.
  std::uint32_t receiving(std::uint32_t l) const {
    return static_cast<std::uint32_t>(m_busy.size()) + l;
  }
  std::uint32_t port_link(std::uint32_t number) const {
    return number % static_cast<std::uint32_t>(m_busy.size());
  }
  port& use(std::uint32_t number) {
    if (!m_ports[number].used) m_used.push_back(number);
    m_ports[number].used = true;
    return m_ports[number];
  }
  void free_ports() {
    for (const std::uint32_t number : m_used) {
      port& p = m_ports[number];
      p.used = p.sends = false;
      p.partner = none;
      p.offers.clear();
      p.senders.clear();
    }
    m_used.clear();
  }

  // Starts what waits for these links, so that those that have most left to do are busy.
  void start_all(const std::vector<std::uint32_t>& links, double now) {
    free_ports();
    for (const std::uint32_t l : links)
      if (m_busy[l] <= now) collect(l, now);
    std::sort(m_used.begin(), m_used.end());
    match();
    for (const std::uint32_t l : m_used) {
      const port& from = m_ports[l];
      if (!from.sends || from.partner == none) continue;
      const auto& chosen = *std::find_if(from.offers.begin(), from.offers.end(),
                                         [&](const offer& o) { return o.last == from.partner; });
      // A link between the first and the last may have been taken.
      if (wait_for(*chosen.what, l, now))
        mark_dirty(l);
      else
        start(*chosen.what, now);
    }
    for (const std::uint32_t l : links)
      if (m_busy[l] <= now)
        for (const step* s : m_waiting[l]) wait_for(*s, l, now);
  }

  // Notes by which link a message of link `l` is held up.
  bool wait_for(const step& s, std::uint32_t l, double now) {
    for (const std::uint32_t other : s.by->links) {
      if (m_busy[other] <= now) continue;
      auto& list = m_blocked[other];
      if (list.empty() || list.back() != l) list.push_back(l);
      return true;
    }
    return false;
  }

  void collect(std::uint32_t l, double now) {
    std::vector<offer>& best = m_best;
    best.clear();
    for (step* s : m_waiting[l]) {
      if (wait_for(*s, l, now)) continue;
      const offer o{s->by->links.back(), urgency(*s), s};
      const auto same = std::find_if(best.begin(), best.end(),
                                     [&](const offer& other) { return other.last == o.last; });
      if (same == best.end())
        best.push_back(o);
      else if (before(o, *same))
        *same = o;
    }
    if (best.empty()) return;
    std::sort(best.begin(), best.end(), before);
    if (best.front().last == l) return start(*best.front().what, now);  // a wire
    port& mine = use(l);
    mine.sends = true;
    mine.weight = m_left[l];
    for (const offer& o : best) {
      port& other = use(receiving(o.last));
      other.weight = m_left[o.last];
      other.senders.push_back(l);
    }
    mine.offers.swap(best);
  }

  void match() {
    std::vector<std::pair<std::uint32_t, const offer*>> all;
    std::vector<std::pair<double, std::uint32_t>> order;
    for (const std::uint32_t l : m_used) {
      order.emplace_back(-m_ports[l].weight, l);
      for (const offer& o : m_ports[l].offers) all.emplace_back(l, &o);
    }
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return before(*a.second, *b.second); });
    for (const auto& [l, o] : all) {
      port &from = m_ports[l], &to = m_ports[receiving(o->last)];
      if (from.partner != none || to.partner != none) continue;
      from.partner = o->last;
      to.partner = l;
    }
    std::sort(order.begin(), order.end());
    for (const auto& [weight, l] : order) {
      if (m_ports[l].partner != none) continue;
      ++m_round;
      augment(l, -weight);
    }
  }

  // A partner for a port, at the cost of no other one that has as much left to do: along an
  // alternating path.
  bool augment(std::uint32_t l, double weight) {
    port& p = m_ports[l];
    p.visited = m_round;
    const auto take = [&](std::uint32_t other) {
      port& o = m_ports[other];
      if (o.visited == m_round) return false;
      o.visited = m_round;
      if (o.partner != none) {
        const std::uint32_t held = o.sends ? receiving(o.partner) : o.partner;
        port& h = m_ports[held];
        if (h.visited == m_round) return false;
        if (!augment(held, weight)) {
          if (h.weight >= weight) return false;
          h.partner = none;
        }
      }
      p.partner = port_link(other);
      o.partner = port_link(l);
      return true;
    };
    if (p.sends)
      return std::any_of(p.offers.begin(), p.offers.end(),
                         [&](const offer& o) { return take(receiving(o.last)); });
    return std::any_of(p.senders.begin(), p.senders.end(), take);
  }

  void start(step& s, double now) {
    const std::uint32_t p = s.parcels.front();
    s.parcels.pop_front();
    const std::uint32_t first = s.by->links.front();
    if (s.parcels.empty()) std::erase(m_waiting[first], &s);
    const double until = now + size_of(m_parcels[p]) * s.per_byte;
    for (const std::uint32_t l : s.by->links) {
      m_busy[l] = until;
      m_left[l] -= until - now;
      m_queued[l] -= until - now;
      m_events.push({until, 0, 0, l});
    }
    m_made.push_back(
        {p, s.hop, first, s.by->links.back(), now, until + s.by->latency, s.by->latency});
    m_events.push({until + s.by->latency, p, s.hop, none});
  }

  const sim::machine& m_machine;
  const std::vector<tree>& m_trees;
  const std::vector<parcel>& m_parcels;
  std::vector<double>& m_busy;
  double m_moment = 0;                     // seconds that do not count
  double m_size = 0;                       // bytes of the largest parcel
  std::vector<double> m_bytes;             // of a parcel, by tree
  std::vector<std::vector<step>> m_steps;  // by tree and hop
  std::vector<std::vector<std::uint32_t>> m_first;
  std::vector<std::vector<step*>> m_waiting;          // by first link
  std::vector<double> m_left;                         // by link: seconds to carry
  std::vector<double> m_queued;                       // by link: of that, what waits for it
  std::vector<std::vector<std::uint32_t>> m_blocked;  // by link: those that wait for it too
  std::vector<bool> m_dirty;
  std::vector<std::uint32_t> m_to_try;
  std::vector<port> m_ports;          // of each link: it sends, or something arrives by it
  std::vector<std::uint32_t> m_used;  // those that are free now
  std::vector<offer> m_best;          // of one link
  int m_round = 0;
  std::priority_queue<event> m_events;
  timetable m_made;
};

}  // namespace

timetable schedule_trees(const sim::machine& m, sim::paths& paths, const std::vector<tree>& trees,
                         const std::vector<parcel>& parcels, std::vector<double>& busy) {
  return scheduler(m, paths, trees, parcels, busy).run();
}

}  // namespace sucl::tune
