// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "composition.hpp"

#include "plan/ir/builder.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace sucl::testing {
namespace {

using namespace core;
using plan::address;
using area = step_memory::area;

constexpr std::uint64_t element = 8;

/// One rank and its steps.
struct walker {
  int rank = 0;
  hierarchical_map where;
  sucl_operation o{};
  std::vector<std::uint64_t> send_counts, recv_counts;
  step_list what;
  address scratch;
  std::set<int> has_come;  ///< of a barrier: the ranks that it has heard of
};

/// Bytes that go from one rank of a step to another.
struct range {
  address at;
  std::uint64_t bytes = 0;
};

/// A rank in a step.
class part {
 public:
  part(walker& self, std::size_t step) : m_self(&self), m_step(step) {}
  walker& self() const { return *m_self; }
  std::size_t number() const { return m_step; }
  const hierarchical_step& step() const { return m_self->what.steps[m_step]; }

  address at(const step_memory& m) const {
    switch (m.where) {
      case area::send: return {plan::space::send, m.at * element};
      case area::recv: return {plan::space::recv, m.at * element};
      case area::scratch: return m_self->scratch + m.at * element;
      default: throw std::logic_error("a step has no memory for its data");
    }
  }
  address input() const { return at(step().in_place ? step().to : step().from); }
  address output() const { return at(step().to); }
  bool has_output() const { return step().to.where != area::none; }

  /// Block `i` of what it receives, or sends to several.
  range received(int i) const { return block(output(), step().recv, i); }
  range sent(int i) const {
    return step().in_place && step().kind == SUCL_KIND_ALLTOALLV ? received(i)
                                                                 : block(input(), step().send, i);
  }
  /// Block `i` of what is reduced.
  range reduced(int i) const { return block(input(), {step().recv.counts, step_arrays::none}, i); }

 private:
  range block(address start, const step_arrays& arrays, int i) const {
    const std::uint64_t* counts = m_self->what.array(arrays.counts);
    const std::uint64_t* displs = m_self->what.array(arrays.displs);
    std::uint64_t before = 0;
    for (int b = 0; b < i; ++b) before += counts ? counts[b] : step().count;
    return {start + (displs ? displs[i] : before) * element,
            (counts ? counts[i] : step().count) * element};
  }

  walker* m_self;
  std::size_t m_step;
};
using parts = std::vector<part>;

bool folds(sucl_kind k) {
  return k == SUCL_KIND_REDUCE || k == SUCL_KIND_ALLREDUCE || k == SUCL_KIND_REDUCE_SCATTER ||
         k == SUCL_KIND_REDUCE_SCATTER_BLOCK;
}

// What rank `from` of a step sends to rank `to`; nothing: no bytes.
range sent(const parts& who, int from, int to) {
  const part& p = who[static_cast<std::size_t>(from)];
  const hierarchical_step& s = p.step();
  const range all{{}, s.count * element};
  switch (s.kind) {
    case SUCL_KIND_BROADCAST: return from == s.root ? range{p.input(), all.bytes} : range{};
    case SUCL_KIND_REDUCE: return to == s.root ? range{p.input(), all.bytes} : range{};
    case SUCL_KIND_ALLREDUCE: return {p.input(), all.bytes};
    case SUCL_KIND_REDUCE_SCATTER:
    case SUCL_KIND_REDUCE_SCATTER_BLOCK: return p.reduced(to);
    case SUCL_KIND_GATHER:
    case SUCL_KIND_GATHERV:
      if (to != s.root) return {};
      [[fallthrough]];
    case SUCL_KIND_ALLGATHER:
    case SUCL_KIND_ALLGATHERV:
      if (s.count == 0) return {};
      return s.in_place && p.has_output() &&
                     (s.kind == SUCL_KIND_ALLGATHER || s.kind == SUCL_KIND_ALLGATHERV ||
                      from == s.root)
                 ? p.received(from)
                 : range{p.input(), all.bytes};
    case SUCL_KIND_SCATTER:
    case SUCL_KIND_SCATTERV: return from == s.root ? p.sent(to) : range{};
    case SUCL_KIND_ALLTOALLV: return p.sent(to);
    default: throw std::logic_error("such a step is not known");
  }
}

// Where rank `to` puts what comes from rank `from`; of reductions, the result.
range taken(const parts& who, int from, int to) {
  const part& p = who[static_cast<std::size_t>(to)];
  const hierarchical_step& s = p.step();
  switch (s.kind) {
    case SUCL_KIND_BROADCAST:
      return to == s.root || from != s.root ? range{} : range{p.output(), s.count * element};
    case SUCL_KIND_REDUCE: return to == s.root ? range{p.output(), s.count * element} : range{};
    case SUCL_KIND_ALLREDUCE: return {p.output(), s.count * element};
    case SUCL_KIND_REDUCE_SCATTER:
    case SUCL_KIND_REDUCE_SCATTER_BLOCK:
      return p.has_output() ? range{p.output(), p.reduced(to).bytes} : range{};
    case SUCL_KIND_GATHER:
    case SUCL_KIND_GATHERV: return to == s.root ? p.received(from) : range{};
    case SUCL_KIND_SCATTER:
    case SUCL_KIND_SCATTERV:
      if (s.count == 0 || from != s.root || (to == s.root && s.in_place)) return {};
      return {p.output(), s.count * element};
    default: return p.received(from);
  }
}

class composer {
 public:
  composer(const composed_operation& operation, damage of)
      : m_operation(operation), m_damage(of), m_builder(operation.what) {
    m_walkers.resize(static_cast<std::size_t>(operation.what.ranks));
    for (int r = 0; r < operation.what.ranks; ++r) prepare(r);
  }

  plan::schedule run() {
    const walker& any = m_walkers.front();
    for (bool moved = true; moved;) {
      moved = meet(level::whole, 0);
      for (int n = 0; n < static_cast<int>(any.where.ranks_on.size()); ++n)
        moved |= meet(level::node, n);
      for (int l = 0; l < m_operation.what.ranks; ++l) moved |= meet(level::across, l);
    }
    for (std::size_t r = 0; r < m_walkers.size(); ++r)
      if (m_next[r] != m_walkers[r].what.size())
        throw std::logic_error("rank " + std::to_string(r) + " waits for ever");
    return m_builder.finish("composition");
  }

 private:
  void prepare(int rank) {
    const plan::problem& p = m_operation.what;
    walker& w = m_walkers[static_cast<std::size_t>(rank)];
    w.rank = rank;
    w.where = map_nodes(m_operation.node_of, rank);
    w.where.islands = m_operation.islands;
    w.has_come = {rank};
    w.o.kind = m_operation.barrier ? SUCL_KIND_BARRIER : static_cast<sucl_kind>(p.kind);
    w.o.root = p.root;
    w.o.flags = p.in_place ? SUCL_FLAG_IN_PLACE : 0;
    add_counts(w);
    w.what = steps_of(w.o, w.where, m_operation.how);
    if (w.what.scratch > 0) w.scratch = m_builder.scratch(rank, w.what.scratch * element);
    m_next.push_back(0);
  }
  void add_counts(walker& w) const {
    const plan::problem& p = m_operation.what;
    const auto ranks = static_cast<std::size_t>(p.ranks), me = static_cast<std::size_t>(w.rank);
    w.o.count = p.counts.size() == 1 ? p.counts[0] : p.counts[me];
    if (p.counts.size() == 1) return;
    const bool pairs = p.kind == kind::alltoallv, at_root = w.rank == p.root;
    for (std::size_t r = 0; r < ranks; ++r) {
      w.send_counts.push_back(p.counts[pairs ? me * ranks + r : r]);
      w.recv_counts.push_back(p.counts[pairs ? r * ranks + me : r]);
    }
    if ((pairs && !p.in_place) || (p.kind == kind::scatterv && at_root))
      w.o.send_counts = w.send_counts.data();
    if (p.kind != kind::scatterv && (p.kind != kind::gatherv || at_root))
      w.o.recv_counts = w.recv_counts.data();
  }

  static bool belongs(const walker& w, level on, int number) {
    return on == level::whole || (on == level::node ? w.where.node : w.where.local) == number;
  }
  // Writes down the step that all ranks of a communicator have come to; false if they have not.
  bool meet(level on, int number) {
    parts who;
    for (walker& w : m_walkers)
      if (belongs(w, on, number)) who.emplace_back(w, m_next[static_cast<std::size_t>(w.rank)]);
    std::stable_sort(who.begin(), who.end(), [&](const part& a, const part& b) {
      return on == level::across && a.self().where.node < b.self().where.node;
    });
    const bool ready = !who.empty() && std::all_of(who.begin(), who.end(), [&](const part& p) {
      return p.number() < p.self().what.size() && p.step().on == on;
    });
    if (!ready) return false;
    const bool left_out = m_damage == damage::no_step && on == level::across && !m_left_out;
    m_left_out = m_left_out || left_out;
    m_builder.set_channel(static_cast<int>(on));
    for (const part& p : who) begin(p);
    if (!left_out) {
      if (who.front().step().kind == SUCL_KIND_BARRIER)
        notify_all(who);
      else
        execute(who);
    }
    for (const part& p : who) end(p);
    for (const part& p : who) ++m_next[static_cast<std::size_t>(p.self().rank)];
    return true;
  }

  // Steps of one wave run on the channels of their communicators, independently of each other; the
  // next wave begins on each of its channels when all of them are done.
  static std::set<level> levels_in(const walker& w, int wave) {
    std::set<level> used;
    for (const hierarchical_step& s : w.what)
      if (s.wave == wave) used.insert(s.on);
    return used;
  }
  static bool is_edge(const part& p, bool first) {
    const step_list& all = p.self().what;
    for (std::size_t s = 0; s < all.size(); ++s)
      if ((first ? s < p.number() : s > p.number()) && all.steps[s].on == p.step().on &&
          all.steps[s].wave == p.step().wave)
        return false;
    return true;
  }
  static std::uint64_t flag(level from, level to) {
    return static_cast<std::uint64_t>(from) * level_count + static_cast<std::uint64_t>(to);
  }
  // The wave of this rank before that of a step, or after it; -1: none.
  static int beside(const part& p, bool before) {
    int found = -1;
    for (const hierarchical_step& s : p.self().what) {
      if (before && s.wave < p.step().wave) found = std::max(found, s.wave);
      if (!before && s.wave > p.step().wave) found = found < 0 ? s.wave : std::min(found, s.wave);
    }
    return found;
  }
  void begin(const part& p) {
    const int rank = p.self().rank, wave = beside(p, true);
    if (m_damage == damage::no_order || wave < 0 || !is_edge(p, true)) return;
    for (const level l : levels_in(p.self(), wave))
      if (l != p.step().on) m_builder.wait(rank, rank, flag(l, p.step().on));
  }
  void end(const part& p) {
    const int rank = p.self().rank, wave = beside(p, false);
    if (m_damage == damage::no_order || wave < 0 || !is_edge(p, false)) return;
    for (const level l : levels_in(p.self(), wave))
      if (l != p.step().on) m_builder.signal(rank, rank, flag(p.step().on, l));
  }

  // Messages between all, into memory of their own, and then to their destinations.
  void execute(const parts& who) {
    const auto ranks = static_cast<int>(who.size());
    std::vector<std::vector<address>> come(who.size(), std::vector<address>(who.size()));
    for (int me = 0; me < ranks; ++me) {
      const int self = rank_of(who, me);
      for (int other = 0; other < ranks; ++other) {
        const range out = sent(who, me, other), in = taken(who, other, me);
        if (other == me) continue;
        m_builder.send(self, rank_of(who, other), out.at, out.bytes);
        if (in.bytes == 0) continue;
        address& to = come[static_cast<std::size_t>(me)][static_cast<std::size_t>(other)];
        to = m_builder.scratch(self, in.bytes);
        m_builder.receive(self, rank_of(who, other), to, in.bytes);
      }
      m_builder.fence(self);
    }
    for (int me = 0; me < ranks; ++me) finish(who, me, come[static_cast<std::size_t>(me)]);
  }
  static int rank_of(const parts& who, int i) {
    return who[static_cast<std::size_t>(i)].self().rank;
  }
  void finish(const parts& who, int me, std::vector<address>& come) {
    const int self = rank_of(who, me);
    const auto ranks = static_cast<int>(who.size());
    // Its own block is where others look for theirs, so it moves first.
    const range own = sent(who, me, me), to = taken(who, me, me);
    address& mine = come[static_cast<std::size_t>(me)];
    if (own.bytes > 0 && to.bytes > 0) {
      mine = m_builder.scratch(self, to.bytes);
      m_builder.copy(self, mine, own.at, to.bytes);
    }
    if (folds(who[static_cast<std::size_t>(me)].step().kind)) {
      for (int other = 1; other < ranks && to.bytes > 0; ++other)
        m_builder.reduce(self, come.front(), come[static_cast<std::size_t>(other)], to.bytes);
      if (to.bytes > 0) m_builder.copy(self, to.at, come.front(), to.bytes);
      return;
    }
    for (int other = 0; other < ranks; ++other) {
      const range there = taken(who, other, me);
      if (there.bytes > 0)
        m_builder.copy(self, there.at, come[static_cast<std::size_t>(other)], there.bytes);
    }
  }

  // A barrier: each rank tells the others of all that it has heard of.
  void notify_all(const parts& who) {
    std::set<int> all;
    for (const part& p : who) all.insert(p.self().has_come.begin(), p.self().has_come.end());
    const auto at = [](int rank) {
      return address{plan::space::recv, static_cast<std::uint64_t>(rank) * element};
    };
    for (const part& p : who)
      for (const part& q : who) {
        if (&p == &q) continue;
        for (const int r : p.self().has_come)
          if (q.self().has_come.count(r) == 0)
            m_builder.send(p.self().rank, q.self().rank, at(r), element);
        for (const int r : q.self().has_come)
          if (p.self().has_come.count(r) == 0 && first_to_tell(who, p, r) == &q)
            m_builder.receive(p.self().rank, q.self().rank, at(r), element);
          else if (p.self().has_come.count(r) == 0)
            m_builder.receive(p.self().rank, q.self().rank,
                              m_builder.scratch(p.self().rank, element), element);
      }
    for (const part& p : who) m_builder.fence(p.self().rank);
    for (const part& p : who) p.self().has_come = all;
  }
  static const part* first_to_tell(const parts& who, const part& to, int rank) {
    for (const part& p : who)
      if (&p != &to && p.self().has_come.count(rank) != 0) return &p;
    return nullptr;
  }

  const composed_operation& m_operation;
  damage m_damage;
  plan::builder m_builder;
  std::vector<walker> m_walkers;
  std::vector<std::size_t> m_next;  ///< step of each rank
  bool m_left_out = false;
};

}  // namespace

plan::schedule composition_of(const composed_operation& operation, damage of) {
  return composer(operation, of).run();
}

}  // namespace sucl::testing
