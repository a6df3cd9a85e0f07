// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Operations of two levels: their steps, executed on plain arrays, and the backend, with threads
// as ranks.
#include "backends/hierarchical/backend.hpp"
#include "core/operation/operation.hpp"
#include "process/process.hpp"

#include "support/jobs/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace sucl::testing {
namespace {

using namespace core;
using memory = std::vector<std::int64_t>;
using area = step_memory::area;

constexpr std::int64_t untouched = -1000000007;

/// What an operation is, for all ranks.
struct scene {
  sucl_kind kind;
  std::vector<int> node_of;
  std::uint64_t count;
  int root;
  bool in_place;
  bool islands;
  step_division how;

  int ranks() const { return static_cast<int>(node_of.size()); }
  bool varies() const {
    return kind == SUCL_KIND_ALLGATHERV || kind == SUCL_KIND_REDUCE_SCATTER ||
           kind == SUCL_KIND_ALLTOALLV || kind == SUCL_KIND_GATHERV || kind == SUCL_KIND_SCATTERV;
  }
  /// Elements from one rank to another, the same in both directions; or of the block of a rank.
  std::uint64_t between(int from, int to) const {
    return !varies() ? count : (count + static_cast<std::uint64_t>(from + to)) % 4;
  }
  std::uint64_t block(int rank) const { return between(rank, 0); }
};

/// One rank of a communicator whose steps are executed one by one.
struct player {
  hierarchical_map where;
  sucl_operation o{};
  std::vector<std::uint64_t> counts, displs;  ///< of its blocks, where the operation has them
  step_list what;
  std::size_t next = 0;
  memory send, recv, scratch;

  bool done() const { return next == what.size(); }
  const hierarchical_step& step() const { return what.steps[next]; }
  std::int64_t* at(const step_memory& p) {
    if (p.where == area::none) return nullptr;
    memory& m = p.where == area::send ? send : p.where == area::recv ? recv : scratch;
    EXPECT_LE(p.at, m.size());
    return m.data() + p.at;
  }
  void check(const std::int64_t* p, std::uint64_t elements) {
    if (elements == 0) return;
    for (memory* m : {&send, &recv, &scratch})
      if (p >= m->data() && p + elements <= m->data() + m->size()) return;
    ADD_FAILURE() << "a step leaves its memory";
  }
};

bool is_pairwise(sucl_kind kind) {
  return kind == SUCL_KIND_ALLTOALL || kind == SUCL_KIND_ALLTOALLV;
}

/// The ranks of a communicator.
class play {
 public:
  explicit play(scene what) : m_scene(std::move(what)) {
    for (int r = 0; r < m_scene.ranks(); ++r) m_players.push_back(make(r));
  }

  void run() {
    const int nodes = static_cast<int>(m_players[0].where.ranks_on.size());
    for (bool moved = true; moved;) {
      moved = meet(level::whole, 0);
      for (int n = 0; n < nodes; ++n) moved |= meet(level::node, n);
      for (int l = 0; l < m_scene.ranks(); ++l) moved |= meet(level::across, l);
    }
    for (int r = 0; r < m_scene.ranks(); ++r) {
      EXPECT_TRUE(m_players[static_cast<std::size_t>(r)].done())
          << "rank " << r << " waits for ever";
      expect_result(r);
    }
  }

 private:
  std::int64_t input(int rank, std::uint64_t i) const {
    return static_cast<std::int64_t>(i * 31 + 7) * (rank + 1);
  }
  std::int64_t sum(std::uint64_t i) const {
    std::int64_t total = 0;
    for (int r = 0; r < m_scene.ranks(); ++r) total += input(r, i);
    return total;
  }

  // Displacements leave a gap after each block, and are others on each rank.
  player make(int r) const {
    player p;
    p.where = map_nodes(m_scene.node_of, r);
    p.where.islands = m_scene.islands;
    p.o.kind = m_scene.kind;
    p.o.count = m_scene.count;
    p.o.root = m_scene.root;
    p.o.flags = m_scene.in_place ? SUCL_FLAG_IN_PLACE : 0;
    if (m_scene.varies()) add_blocks(p, r);
    p.what = steps_of(p.o, p.where, m_scene.how);
    p.scratch.assign(p.what.scratch, untouched);
    const extents e = extents_of(p.o, r, m_scene.ranks());
    p.send.assign(e.send, untouched);
    p.recv.assign(e.recv, untouched);
    fill(p, r);
    return p;
  }
  void add_blocks(player& p, int r) const {
    const bool pairs = is_pairwise(m_scene.kind), scatters = m_scene.kind == SUCL_KIND_SCATTERV;
    std::uint64_t next = static_cast<std::uint64_t>(r % 2);
    for (int s = 0; s < m_scene.ranks(); ++s) {
      p.counts.push_back(pairs ? m_scene.between(r, s) : m_scene.block(s));
      p.displs.push_back(next);
      next += p.counts.back() + 1;
    }
    p.o.count = m_scene.block(r);
    if (!pairs && m_scene.kind != SUCL_KIND_ALLGATHERV &&
        m_scene.kind != SUCL_KIND_REDUCE_SCATTER && r != m_scene.root)
      return;
    if (!scatters) p.o.recv_counts = p.counts.data(), p.o.recv_displs = p.displs.data();
    if (scatters || (pairs && !m_scene.in_place))
      p.o.send_counts = p.counts.data(), p.o.send_displs = p.displs.data();
    if (m_scene.kind == SUCL_KIND_REDUCE_SCATTER) p.o.recv_displs = nullptr;
  }
  std::uint64_t displacement(int r, int block) const {
    const player& p = m_players[static_cast<std::size_t>(r)];
    return m_scene.varies() ? p.displs[static_cast<std::size_t>(block)]
                            : static_cast<std::uint64_t>(block) * m_scene.count;
  }

  void fill(player& p, int rank) const {
    const sucl_kind k = m_scene.kind;
    const bool to_all = k == SUCL_KIND_ALLGATHER || k == SUCL_KIND_ALLGATHERV;
    const bool gathers = to_all || k == SUCL_KIND_GATHER || k == SUCL_KIND_GATHERV;
    const bool scatters = k == SUCL_KIND_SCATTER || k == SUCL_KIND_SCATTERV;
    if ((k == SUCL_KIND_BROADCAST || scatters) && rank != m_scene.root) return;
    memory& m = m_scene.in_place ? p.recv : p.send;
    std::uint64_t shift = 0;
    if (gathers && m_scene.in_place && (to_all || rank == m_scene.root))
      shift = m_scene.varies() ? p.displs[static_cast<std::size_t>(rank)]
                               : static_cast<std::uint64_t>(rank) * m_scene.count;
    const std::uint64_t n = gathers ? p.o.count : m.size();
    if (m.size() < shift + n) m.resize(shift + n, untouched);
    for (std::uint64_t i = 0; i < n; ++i) m[shift + i] = input(rank, i);
  }

  bool belongs(const player& p, level on, int number) const {
    return on == level::whole || (on == level::node ? p.where.node : p.where.local) == number;
  }
  // executes what all ranks of a communicator have come to; false if they have not, or one waits
  // for something else.
  bool meet(level on, int number) {
    std::vector<player*> who;
    for (player& p : m_players)
      if (belongs(p, on, number)) who.push_back(&p);
    std::stable_sort(who.begin(), who.end(), [&](const player* a, const player* b) {
      return on == level::across && a->where.node < b->where.node;
    });
    const bool ready = !who.empty() && std::all_of(who.begin(), who.end(), [&](player* p) {
      return !p->done() && p->step().on == on;
    });
    if (!ready) return false;
    if (on == level::across) {
      EXPECT_EQ(who.size(), who[0]->where.ranks_on.size()) << "a node has no such rank";
    }
    for (player* p : who) {
      EXPECT_EQ(p->step().kind, who[0]->step().kind);
      EXPECT_EQ(p->step().root, who[0]->step().root);
      EXPECT_EQ(p->step().phase, who[0]->step().phase);
      EXPECT_EQ(p->step().wave, who[0]->step().wave);
    }
    run_steps(who);
    for (player* p : who) ++p->next;
    return true;
  }

  static sucl_operation record_of(player& p, int r, int ranks) {
    const hierarchical_step& s = p.step();
    sucl_operation o{};
    o.kind = s.kind;
    o.root = s.root;
    o.count = s.count;
    o.flags = s.in_place ? SUCL_FLAG_IN_PLACE : 0;
    o.send_counts = p.what.array(s.send.counts), o.send_displs = p.what.array(s.send.displs);
    o.recv_counts = p.what.array(s.recv.counts), o.recv_displs = p.what.array(s.recv.displs);
    o.send = p.at(s.from);
    o.recv = p.at(s.to);
    const extents e = extents_of(o, r, ranks);
    p.check(static_cast<const std::int64_t*>(o.send), e.send);
    p.check(static_cast<const std::int64_t*>(o.recv), e.recv);
    return o;
  }

  // Where a block starts in a vector of blocks, and how long it is.
  static std::pair<std::uint64_t, std::uint64_t> part(const std::uint64_t* counts,
                                                      const std::uint64_t* displs,
                                                      const sucl_operation& o, int block) {
    const std::uint64_t length = counts ? counts[block] : o.count;
    if (displs) return {displs[block], length};
    if (counts) return {std::accumulate(counts, counts + block, std::uint64_t{0}), length};
    return {static_cast<std::uint64_t>(block) * o.count, length};
  }
  static std::pair<std::uint64_t, std::uint64_t> recv_part(const sucl_operation& o, int block) {
    return part(o.recv_counts, o.recv_displs, o, block);
  }
  static std::pair<std::uint64_t, std::uint64_t> send_part(const sucl_operation& o, int block) {
    const bool there = (o.flags & SUCL_FLAG_IN_PLACE) != 0 && is_pairwise(o.kind);
    return there ? recv_part(o, block) : part(o.send_counts, o.send_displs, o, block);
  }

  /// The ranks of one communicator in one step.
  struct together {
    std::vector<sucl_operation> records;
    std::vector<memory> given;

    const sucl_operation& of(int r) const { return records[static_cast<std::size_t>(r)]; }
    std::int64_t value(int r, std::uint64_t i) const {
      return given[static_cast<std::size_t>(r)].at(i);
    }
    std::int64_t total(std::uint64_t i) const {
      std::int64_t t = 0;
      for (const memory& m : given) t += m.at(i);
      return t;
    }
    void sum_into(std::int64_t* to, std::uint64_t first, std::uint64_t n) const {
      for (std::uint64_t i = 0; i < n; ++i) to[i] = total(first + i);
    }
    // The blocks of all ranks, as the one that gets them has them.
    void collect(int r) const {
      auto* to = static_cast<std::int64_t*>(of(r).recv);
      for (int s = 0; s < static_cast<int>(records.size()); ++s) {
        const auto [start, length] = recv_part(of(r), s);
        const bool there = (of(s).flags & SUCL_FLAG_IN_PLACE) != 0;
        if (of(r).recv_counts) {
          EXPECT_EQ(length, of(s).count) << "of rank " << s;
        }
        const std::uint64_t from = there ? recv_part(of(s), s).first : 0;
        for (std::uint64_t i = 0; i < length; ++i) to[start + i] = value(s, from + i);
      }
    }
    void exchange(int r) const {
      auto* to = static_cast<std::int64_t*>(of(r).recv);
      for (int s = 0; s < static_cast<int>(records.size()); ++s) {
        const auto [start, length] = recv_part(of(r), s);
        const auto [from, sent] = send_part(of(s), r);
        EXPECT_EQ(length, sent) << "from rank " << s;
        for (std::uint64_t i = 0; i < length; ++i) to[start + i] = value(s, from + i);
      }
    }
    void run(int r) const {
      const sucl_operation& o = of(r);
      auto* to = static_cast<std::int64_t*>(o.recv);
      const bool root = r == o.root, there = (o.flags & SUCL_FLAG_IN_PLACE) != 0;
      switch (o.kind) {
        case SUCL_KIND_BARRIER: return;
        case SUCL_KIND_BROADCAST:
          for (std::uint64_t i = 0; !root && i < o.count; ++i) to[i] = value(o.root, i);
          return;
        case SUCL_KIND_REDUCE: return root ? sum_into(to, 0, o.count) : void();
        case SUCL_KIND_ALLREDUCE: return sum_into(to, 0, o.count);
        case SUCL_KIND_REDUCE_SCATTER:
        case SUCL_KIND_REDUCE_SCATTER_BLOCK: {
          const auto [start, length] = recv_part(o, r);
          return sum_into(to, start, length);
        }
        case SUCL_KIND_ALLGATHER:
        case SUCL_KIND_ALLGATHERV: return collect(r);
        case SUCL_KIND_GATHER:
        case SUCL_KIND_GATHERV: return root ? collect(r) : void();
        case SUCL_KIND_SCATTER:
        case SUCL_KIND_SCATTERV: {
          const auto [start, length] = send_part(of(o.root), r);
          if (!there) {
            EXPECT_EQ(length, o.count);
          }
          for (std::uint64_t i = 0; !there && i < length; ++i) to[i] = value(o.root, start + i);
          return;
        }
        case SUCL_KIND_ALLTOALLV: return exchange(r);
        default: ADD_FAILURE() << "kind " << o.kind << " is no step";
      }
    }
  };

  static void run_steps(const std::vector<player*>& who) {
    const auto ranks = static_cast<int>(who.size());
    together all;
    for (int r = 0; r < ranks; ++r) {
      const sucl_operation o = record_of(*who[static_cast<std::size_t>(r)], r, ranks);
      const extents e = extents_of(o, r, ranks);
      const bool there = (o.flags & SUCL_FLAG_IN_PLACE) != 0;
      const auto* from = static_cast<const std::int64_t*>(there ? o.recv : o.send);
      const std::uint64_t n = there ? e.recv : e.send;
      if (from) all.given.emplace_back(from, from + n);
      if (!from) all.given.emplace_back();
      all.records.push_back(o);
    }
    for (int r = 0; r < ranks; ++r) all.run(r);
  }

  // What has to be in recv in the end; nothing: anything.
  std::vector<std::optional<std::int64_t>> wanted(int rank) const {
    const player& p = m_players[static_cast<std::size_t>(rank)];
    const bool root = rank == m_scene.root;
    const std::uint64_t n = p.recv.size();
    std::vector<std::optional<std::int64_t>> w(n, untouched);
    const auto put = [&](std::uint64_t at, int from, std::uint64_t first, std::uint64_t length) {
      for (std::uint64_t i = 0; i < length; ++i) w.at(at + i) = input(from, first + i);
    };
    switch (m_scene.kind) {
      case SUCL_KIND_BROADCAST: put(0, m_scene.root, 0, n); break;
      case SUCL_KIND_REDUCE:
        for (std::uint64_t i = 0; i < n; ++i)
          w[i] = root ? sum(i) : m_scene.in_place ? input(rank, i) : untouched;
        break;
      case SUCL_KIND_ALLREDUCE:
        for (std::uint64_t i = 0; i < n; ++i) w[i] = sum(i);
        break;
      case SUCL_KIND_GATHER:
      case SUCL_KIND_GATHERV:
        if (!root) return std::vector<std::optional<std::int64_t>>(n);
        [[fallthrough]];
      case SUCL_KIND_ALLGATHER:
      case SUCL_KIND_ALLGATHERV:
        for (int s = 0; s < m_scene.ranks(); ++s)
          put(displacement(rank, s), s, 0, m_scene.block(s));
        break;
      case SUCL_KIND_SCATTER:
      case SUCL_KIND_SCATTERV:
        if (root && m_scene.in_place) return std::vector<std::optional<std::int64_t>>(n);
        put(0, m_scene.root, displacement(m_scene.root, rank), m_scene.block(rank));
        break;
      case SUCL_KIND_ALLTOALL:
      case SUCL_KIND_ALLTOALLV:
        for (int s = 0; s < m_scene.ranks(); ++s)
          put(displacement(rank, s), s, displacement(s, rank), m_scene.between(s, rank));
        if (m_scene.in_place)  // gaps
          for (auto& one : w)
            if (one == untouched) one.reset();
        break;
      default: {
        std::uint64_t first = 0;
        for (int s = 0; s < rank; ++s) first += m_scene.block(s);
        for (std::uint64_t i = 0; i < n; ++i) {
          w[i].reset();  // in place the rest is scratch
          if (i < m_scene.block(rank)) w[i] = sum(first + i);
        }
      }
    }
    return w;
  }

  void expect_result(int rank) const {
    const player& p = m_players[static_cast<std::size_t>(rank)];
    const auto all = wanted(rank);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i]) continue;
      ASSERT_EQ(p.recv[i], *all[i]) << "rank " << rank << ", element " << i;
    }
    for (std::uint64_t i = 0; i < p.send.size(); ++i)
      ASSERT_TRUE(p.send[i] == untouched || p.send[i] == input(rank, i));
  }

  scene m_scene;
  std::vector<player> m_players;
};

const std::vector<std::vector<int>> all_nodes{
    {0, 1},          {0, 0, 1},       {0, 1, 1},          {0, 0, 1, 1},
    {0, 1, 0, 1},    {0, 0, 0, 1, 1}, {0, 0, 1, 1, 2, 2}, {0, 0, 0, 1, 1, 1},
    {0, 1, 1, 0, 2}, {0, 0, 0, 0, 1}, {0, 1, 2, 2, 1, 0}, {0, 0, 0, 1, 1, 1, 2, 2}};

std::vector<sucl_kind> kinds_with_steps(const hierarchical_map& where) {
  std::vector<sucl_kind> all;
  for (sucl_kind k = 0; k <= SUCL_KIND_EXSCAN; ++k)
    if (has_steps(k, where)) all.push_back(k);
  return all;
}

// Every count and form of one operation; returns how many there were.
int play_all(scene what) {
  int played = 0;
  for (const std::uint64_t count : {1, 2, 3, 12, 13})
    for (const bool in_place : {false, true})
      for (const std::uint64_t piece : {0, 5}) {
        what.count = count;
        what.in_place = in_place;
        what.how.piece = piece;
        SCOPED_TRACE(std::string(name(static_cast<sucl::kind>(what.kind))) + " of " +
                     std::to_string(count) + " on " + ::testing::PrintToString(what.node_of) +
                     (what.islands ? " as islands" : "") + ", root " + std::to_string(what.root) +
                     ", " + std::to_string(what.how.slices) + " of " +
                     std::to_string(what.how.leaders) + " leaders, pieces of " +
                     std::to_string(piece) + (in_place ? ", in place" : ""));
        play(what).run();
        ++played;
      }
  return played;
}

int play_everything(const std::vector<int>& nodes, bool islands) {
  int played = 0;
  hierarchical_map where = map_nodes(nodes, 0);
  where.islands = islands;
  for (const sucl_kind kind : kinds_with_steps(where)) {
    const bool is_rooted = rooted(static_cast<sucl::kind>(kind));
    const int roots = is_rooted ? static_cast<int>(nodes.size()) : 1;
    // Others have one leader.
    const int most = kind <= SUCL_KIND_ALLREDUCE ? where.max_leaders : 1;
    for (int leaders = 1; leaders <= most; ++leaders)
      for (int slices = 1; slices <= leaders; ++slices)
        for (int root = 0; root < roots; ++root)
          played += play_all({kind, nodes, 0, root, false, islands, {slices, leaders, 0}});
  }
  return played;
}

TEST(Hierarchical, StepsGiveTheResultOfTheOperation) {
  int played = 0;
  for (const auto& nodes : all_nodes) played += play_everything(nodes, false);
  EXPECT_GT(played, 3000);
}

TEST(Hierarchical, EveryCollectiveButScansHasStepsOnIslands) {
  hierarchical_map islands = map_nodes({0, 1, 0}, 0);
  islands.islands = true;
  EXPECT_EQ(kinds_with_steps(islands).size(), 14u);
  int played = 0;
  for (const auto& nodes : all_nodes) played += play_everything(nodes, true);
  EXPECT_GT(played, 6000);
}

TEST(Hierarchical, NothingHasNoSteps) {
  const hierarchical_map where = map_nodes({0, 0, 1}, 0);
  for (const sucl_kind kind : kinds_with_steps(where)) {
    sucl_operation nothing{};
    nothing.kind = kind;
    EXPECT_EQ(steps_of(nothing, where, {}).size() > 0, kind == SUCL_KIND_BARRIER);
  }
}

TEST(Hierarchical, OnlyLeadersTakePartBetweenNodes) {
  for (const auto& nodes : all_nodes)
    for (int r = 0; r < static_cast<int>(nodes.size()); ++r) {
      const hierarchical_map where = map_nodes(nodes, r);
      sucl_operation o{};
      o.kind = SUCL_KIND_ALLREDUCE;
      o.count = 100;
      for (const hierarchical_step& s :
           steps_of(o, where, {where.max_leaders, where.max_leaders, 0}))
        EXPECT_TRUE(s.on == level::node || where.local < where.max_leaders);
    }
}

// While one piece is between the nodes, the next one is within them.
TEST(Hierarchical, PiecesAreOnAllLevelsAtOnce) {
  sucl_operation o{};
  o.kind = SUCL_KIND_ALLREDUCE;
  o.count = 40;
  const step_list what = steps_of(o, map_nodes({0, 0, 1, 1}, 0), {1, 1, 10});
  ASSERT_EQ(what.size(), 12u);
  std::vector<int> in_wave(6, 0);
  for (const hierarchical_step& s : what) ++in_wave.at(static_cast<std::size_t>(s.wave));
  EXPECT_EQ(in_wave, (std::vector<int>{1, 2, 3, 3, 2, 1}));
}

TEST(Hierarchical, SettingsAreRead) {
  const auto read = [](const char* key, const char* value) {
    return hierarchical_settings::read({{key, value}});
  };
  const hierarchical_map where = map_nodes({0, 0, 0, 1, 1}, 0);
  EXPECT_EQ(hierarchical_settings{}.leaders_of(where), 2);
  EXPECT_EQ(read("leaders", "1").leaders_of(where), 1);
  EXPECT_EQ(read("leaders", "9").leaders_of(where), 2);
  EXPECT_EQ(read("single_leader", "1Mi").single_leader, 1u << 20);
  EXPECT_EQ(read("piece", "1Mi").piece, 1u << 20);
  EXPECT_EQ(read("leaders", "1048576").leaders, 1u << 20);
}

TEST(Hierarchical, WrongSettingsAreNamed) {
  constexpr const char* all[][3] = {
      {"leader", "1", "It knows leaders"},
      {"leaders", "some", "from 0 to 1048576"},
      {"leaders", "1048577", "from 0 to 1048576"},
      {"single_leader", "-1", "from 0 to 1048576Ti"},
      {"single_leader", "2097152Ti", "from 0 to 1048576Ti"},
      {"piece", "64Q", "from 0 to 1048576Ti"},
      {"piece", "", "from 0 to 1048576Ti"},
  };
  for (const auto& [key, value, allowed] : all) {
    try {
      (void)hierarchical_settings::read({{key, value}});
      ADD_FAILURE() << key << " = " << value << " was read";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::configuration);
      EXPECT_NE(e.message().find("backend hierarchical"), std::string::npos) << e.what();
      EXPECT_NE(e.message().find(key + std::string(" = ") + value), std::string::npos) << e.what();
      EXPECT_NE(e.hint().find(allowed), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace sucl::testing
