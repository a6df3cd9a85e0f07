// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Operations of two levels: their steps, executed on plain arrays, and the backend, with threads
// as ranks.
#include "backends/hierarchical/backend.hpp"
#include "core/operation/operation.hpp"
#include "process/process.hpp"

#include "support/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace sucl::testing {
namespace {

using namespace core;
using memory = std::vector<std::int64_t>;
using area = step_memory::area;

constexpr std::int64_t untouched = -1000000007;

/// One rank of a communicator whose steps are executed one by one.
struct player {
  hierarchical_map where;
  sucl_operation o{};
  step_list what;
  std::size_t next = 0;
  memory send, recv, scratch;

  bool done() const { return next == what.size; }
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

/// The ranks of a communicator.
class play {
 public:
  play(sucl_kind kind, const std::vector<int>& node_of, std::uint64_t count, int root,
       bool in_place, int slices, int leaders)
      : m_kind(kind), m_count(count), m_root(root), m_in_place(in_place) {
    const auto p = node_of.size();
    for (std::size_t r = 0; r < p; ++r) {
      player one;
      one.where = map_nodes(node_of, static_cast<int>(r));
      one.o.kind = kind;
      one.o.count = count;
      one.o.root = root;
      one.o.flags = in_place ? SUCL_FLAG_IN_PLACE : 0;
      one.what = steps_of(one.o, one.where, slices, leaders);
      one.scratch.assign(one.what.scratch, untouched);
      const extents e = extents_of(one.o, static_cast<int>(r), static_cast<int>(p));
      one.send.assign(e.send, untouched);
      one.recv.assign(e.recv, untouched);
      fill(one, static_cast<int>(r));
      m_players.push_back(std::move(one));
    }
  }

  void run() {
    const int nodes = static_cast<int>(m_players[0].where.ranks_on.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (int n = 0; n < nodes; ++n) moved |= meet(level::node, n);
      for (int l = 0; l < static_cast<int>(m_players.size()); ++l) moved |= meet(level::across, l);
    }
    for (std::size_t r = 0; r < m_players.size(); ++r) {
      EXPECT_TRUE(m_players[r].done()) << "rank " << r << " waits for ever";
      expect_result(static_cast<int>(r));
    }
  }

 private:
  std::int64_t input(int rank, std::uint64_t i) const {
    return static_cast<std::int64_t>(i * 31 + 7) * (rank + 1);
  }
  std::int64_t sum(std::uint64_t i) const {
    std::int64_t total = 0;
    for (std::size_t r = 0; r < m_players.size(); ++r) total += input(static_cast<int>(r), i);
    return total;
  }
  void fill(player& p, int rank) {
    const bool gathers = m_kind == SUCL_KIND_ALLGATHER;
    if (m_kind == SUCL_KIND_BROADCAST && rank != m_root) return;
    memory& m = m_in_place ? p.recv : p.send;
    const std::uint64_t shift =
        gathers && m_in_place ? static_cast<std::uint64_t>(rank) * m_count : 0;
    const std::uint64_t n = gathers ? m_count : m.size();
    for (std::uint64_t i = 0; i < n; ++i) m[shift + i] = input(rank, i);
  }

  // executes what all ranks of a communicator have come to; false if they have not, or one waits
  // for something else.
  bool meet(level on, int number) {
    std::vector<player*> who;
    for (player& p : m_players)
      if ((on == level::node ? p.where.node : p.where.local) == number) who.push_back(&p);
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
      EXPECT_EQ(p->step().uneven, who[0]->step().uneven);
      if (p->step().uneven) {
        EXPECT_EQ(p->what.counts, who[0]->what.counts);
      }
    }
    run_steps(who);
    for (player* p : who) ++p->next;
    return true;
  }

  static void run_steps(const std::vector<player*>& who) {
    const hierarchical_step& any = who[0]->step();
    const auto ranks = static_cast<int>(who.size());
    std::vector<sucl_operation> records;
    std::vector<memory> given;
    std::uint64_t longest = 0;
    for (int r = 0; r < ranks; ++r) {
      player& p = *who[static_cast<std::size_t>(r)];
      sucl_operation o{};
      o.kind = any.kind;
      o.root = any.root;
      o.count = p.step().count;
      o.flags = p.step().in_place ? SUCL_FLAG_IN_PLACE : 0;
      o.recv_counts = p.step().uneven ? p.what.counts.data() : nullptr;
      o.recv_displs = p.step().uneven ? p.what.displs.data() : nullptr;
      o.send = p.at(p.step().from);
      o.recv = p.at(p.step().to);
      const extents e = extents_of(o, r, ranks);
      p.check(static_cast<const std::int64_t*>(o.send), e.send);
      p.check(static_cast<const std::int64_t*>(o.recv), e.recv);
      const auto* from = static_cast<const std::int64_t*>(p.step().in_place ? o.recv : o.send);
      const std::uint64_t n = p.step().in_place ? e.recv : e.send;
      given.emplace_back(from, from + n);
      longest = std::max(longest, n);
      records.push_back(o);
    }
    const auto total = [&](std::uint64_t i) {
      std::int64_t t = 0;
      for (const memory& m : given) t += m.at(i);
      return t;
    };
    // Where the block of a rank is in a vector of all blocks.
    const auto start = [&](int r) {
      const sucl_operation& o = records[static_cast<std::size_t>(any.root)];
      if (o.recv_displs) return o.recv_displs[r];
      if (o.recv_counts) return std::accumulate(o.recv_counts, o.recv_counts + r, std::uint64_t{0});
      return static_cast<std::uint64_t>(r) * o.count;
    };
    for (int r = 0; r < ranks; ++r) {
      const sucl_operation& o = records[static_cast<std::size_t>(r)];
      auto* to = static_cast<std::int64_t*>(o.recv);
      const bool root = r == any.root;
      const auto collect = [&] {
        for (int s = 0; s < ranks; ++s) {
          const sucl_operation& other = records[static_cast<std::size_t>(s)];
          const bool there = (other.flags & SUCL_FLAG_IN_PLACE) != 0;
          for (std::uint64_t i = 0; i < other.count; ++i)
            to[start(s) + i] = given[static_cast<std::size_t>(s)].at(there ? start(s) + i : i);
        }
      };
      switch (any.kind) {
        case SUCL_KIND_BARRIER: break;
        case SUCL_KIND_BROADCAST:
          for (std::uint64_t i = 0; !root && i < o.count; ++i)
            to[i] = given[static_cast<std::size_t>(any.root)].at(i);
          break;
        case SUCL_KIND_REDUCE:
          for (std::uint64_t i = 0; root && i < o.count; ++i) to[i] = total(i);
          break;
        case SUCL_KIND_ALLREDUCE:
          for (std::uint64_t i = 0; i < o.count; ++i) to[i] = total(i);
          break;
        case SUCL_KIND_REDUCE_SCATTER:
          for (std::uint64_t i = 0; i < o.recv_counts[r]; ++i) to[i] = total(start(r) + i);
          break;
        case SUCL_KIND_REDUCE_SCATTER_BLOCK:
          for (std::uint64_t i = 0; i < o.count; ++i) to[i] = total(start(r) + i);
          break;
        case SUCL_KIND_ALLGATHER:
        case SUCL_KIND_ALLGATHERV: collect(); break;
        case SUCL_KIND_GATHER:
        case SUCL_KIND_GATHERV:
          if (root) collect();
          break;
        case SUCL_KIND_SCATTER:
          for (std::uint64_t i = 0; i < o.count; ++i)
            to[i] = given[static_cast<std::size_t>(any.root)].at(start(r) + i);
          break;
        default: ADD_FAILURE() << "kind " << any.kind << " is no step";
      }
    }
  }

  void expect_result(int rank) const {
    const player& p = m_players[static_cast<std::size_t>(rank)];
    const bool root = rank == m_root;
    for (std::uint64_t i = 0; i < p.recv.size(); ++i) {
      std::int64_t wanted = untouched;
      switch (m_kind) {
        case SUCL_KIND_BROADCAST: wanted = input(m_root, i); break;
        case SUCL_KIND_REDUCE:
          wanted = root ? sum(i) : m_in_place ? input(rank, i) : untouched;
          break;
        case SUCL_KIND_ALLREDUCE: wanted = sum(i); break;
        case SUCL_KIND_ALLGATHER: wanted = input(static_cast<int>(i / m_count), i % m_count); break;
        default:
          if (i < m_count) wanted = sum(static_cast<std::uint64_t>(rank) * m_count + i);
          if (i >= m_count) continue;  // in place it is scratch
      }
      ASSERT_EQ(p.recv[i], wanted) << "rank " << rank << ", element " << i;
    }
    for (std::uint64_t i = 0; i < p.send.size(); ++i)
      ASSERT_EQ(p.send[i], m_kind == SUCL_KIND_BROADCAST && !root ? untouched : input(rank, i));
  }

  sucl_kind m_kind;
  std::uint64_t m_count;
  int m_root;
  bool m_in_place;
  std::vector<player> m_players;
};

const std::vector<std::vector<int>> all_nodes{
    {0, 1},          {0, 0, 1},       {0, 1, 1},          {0, 0, 1, 1},
    {0, 1, 0, 1},    {0, 0, 0, 1, 1}, {0, 0, 1, 1, 2, 2}, {0, 0, 0, 1, 1, 1},
    {0, 1, 1, 0, 2}, {0, 0, 0, 0, 1}, {0, 1, 2, 2, 1, 0}, {0, 0, 0, 1, 1, 1, 2, 2}};

const std::vector<sucl_kind> kinds{SUCL_KIND_BARRIER,   SUCL_KIND_BROADCAST,
                                   SUCL_KIND_REDUCE,    SUCL_KIND_ALLREDUCE,
                                   SUCL_KIND_ALLGATHER, SUCL_KIND_REDUCE_SCATTER_BLOCK};

// Every count and form of one operation; returns how many there were.
int play_all(sucl_kind kind, const std::vector<int>& nodes, int root, int slices, int leaders) {
  int played = 0;
  for (const std::uint64_t count : {1, 2, 3, 12, 13})
    for (const bool in_place : {false, true}) {
      SCOPED_TRACE(std::string(name(static_cast<sucl::kind>(kind))) + " of " +
                   std::to_string(count) + " on " + ::testing::PrintToString(nodes) + ", root " +
                   std::to_string(root) + ", " + std::to_string(slices) + " of " +
                   std::to_string(leaders) + " leaders" + (in_place ? ", in place" : ""));
      play(kind, nodes, count, root, in_place, slices, leaders).run();
      ++played;
    }
  return played;
}

TEST(Hierarchical, StepsGiveTheResultOfTheOperation) {
  int played = 0;
  for (const auto& nodes : all_nodes) {
    const hierarchical_map where = map_nodes(nodes, 0);
    for (const sucl_kind kind : kinds) {
      if (!has_steps(kind, where)) continue;
      const bool is_rooted = rooted(static_cast<sucl::kind>(kind));
      const int roots = is_rooted ? static_cast<int>(nodes.size()) : 1;
      for (int leaders = 1; leaders <= where.max_leaders; ++leaders)
        for (int slices = 1; slices <= leaders; ++slices)
          for (int root = 0; root < roots; ++root)
            played += play_all(kind, nodes, root, slices, leaders);
    }
  }
  EXPECT_GT(played, 3000);
}

TEST(Hierarchical, NothingHasNoSteps) {
  for (const sucl_kind kind : kinds) {
    sucl_operation nothing{};
    nothing.kind = kind;
    const auto steps = steps_of(nothing, map_nodes({0, 0, 1}, 0), 1, 1);
    EXPECT_EQ(steps.size > 0, kind == SUCL_KIND_BARRIER);
  }
}

TEST(Hierarchical, OnlyLeadersTakePartBetweenNodes) {
  for (const auto& nodes : all_nodes)
    for (int r = 0; r < static_cast<int>(nodes.size()); ++r) {
      const hierarchical_map where = map_nodes(nodes, r);
      sucl_operation o{};
      o.kind = SUCL_KIND_ALLREDUCE;
      o.count = 100;
      for (const hierarchical_step& s : steps_of(o, where, where.max_leaders, where.max_leaders))
        EXPECT_TRUE(s.on == level::node || where.local < where.max_leaders);
    }
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
  EXPECT_THROW(read("leader", "1"), error);
  EXPECT_THROW(read("leaders", "some"), error);
  EXPECT_EQ(read("leaders", "1048576").leaders, 1u << 20);
  EXPECT_THROW(read("leaders", "1048577"), error);
  EXPECT_THROW(read("single_leader", "2097152Ti"), error);
}

}  // namespace
}  // namespace sucl::testing
