// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "case.hpp"

#include <sucl/error.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace {

using namespace sucl;
using test::user_array;

// What one rank posts, one operation after the other, with the memory it uses.
struct program {
  struct entry {
    sucl_operation op{};
    core::layouts where;
    std::vector<sucl_operation> parts;
  };
  std::vector<std::unique_ptr<user_array>> arrays;
  std::vector<std::unique_ptr<entry>> entries;
  bool one_at_a_time = false;
};

struct world_case {
  int p = 2;
  bool device = false;
  bool strided = false;
  test::fake_rules rules;
  core::staging settings;
  unsigned seed = 1;
};

// Ranks that run programs as the core will: an operation is posted as soon as those before allow.
class ranks {
 public:
  explicit ranks(const world_case& c)
      : programs(static_cast<std::size_t>(c.p)),
        m_case(c),
        m_random(c.seed),
        m_copier(c.seed),
        world(c.p, c.rules, c.seed) {}

  user_array& array(int rank, std::uint64_t elements) {
    auto& arrays = programs[static_cast<std::size_t>(rank)].arrays;
    const bool device = m_case.device && rank % 2 == 0;
    arrays.push_back(std::make_unique<user_array>(elements, 4, m_case.strided, device, m_random));
    m_copier.add(arrays.back()->memory);
    return *arrays.back();
  }

  program::entry& add(int rank, sucl_kind kind) {
    auto& entries = programs[static_cast<std::size_t>(rank)].entries;
    entries.push_back(std::make_unique<program::entry>());
    sucl_operation& op = entries.back()->op;
    op.struct_size = sizeof(op);
    op.kind = kind;
    op.type = SUCL_TYPE_INT32;
    op.element_size = 4;
    op.sequence = entries.size();
    op.send_memory = op.recv_memory =
        m_case.device && rank % 2 == 0 ? SUCL_MEMORY_DEVICE : SUCL_MEMORY_SYSTEM;
    return *entries.back();
  }

  /// A message whose elements are number, number + 1, ...
  void send(program::entry& e, user_array& from, std::uint64_t count, int to, int number) {
    e.op.root = to;
    e.op.count = count;
    e.op.send = from.data();
    e.where.send = from.layout;
    for (std::uint64_t i = 0; i < count; ++i) from.put(i, element(number, i).data());
  }
  void receive(program::entry& e, user_array& to, std::uint64_t count, int from, int number) {
    e.op.source = from;
    (e.op.kind == SUCL_KIND_SENDRECV ? e.op.recv_count : e.op.count) = count;
    e.op.recv = to.data();
    e.where.recv = to.layout;
    for (std::uint64_t i = 0; i < count; ++i) to.expect(i, element(number, i).data());
  }

  /// Empty if all programs ended and every array is as expected.
  std::string run();

  std::vector<program> programs;

 private:
  struct running {
    std::unique_ptr<core::staged_operation> staged_operation;
    sucl_request* request = nullptr;
    sucl_operation op{};
    bool done = false;
  };
  static test::bytes element(int number, std::uint64_t i) {
    const auto value = static_cast<std::int32_t>(number * 100000 + static_cast<int>(i));
    test::bytes result(4);
    std::memcpy(result.data(), &value, 4);
    return result;
  }
  bool turn(int rank, std::vector<running>& active, std::size_t& next);

  world_case m_case;
  std::mt19937 m_random;
  test::fake_copier m_copier;
  core::device_copier m_table = m_copier.table();

 public:
  test::fake_world world;
  core::scratch_pool pool;
};

bool ranks::turn(int rank, std::vector<running>& active, std::size_t& next) {
  const core::backend_comm below = world.channel_of(rank);
  const auto& entries = programs[static_cast<std::size_t>(rank)].entries;
  bool done = true;
  for (running& r : active) {
    if (!r.done && r.staged_operation) r.done = r.staged_operation->step();
    std::int32_t finished = 0;
    if (!r.done && r.request) below.table->test(below.comm, r.request, &finished);
    r.done = r.done || finished != 0;
    done = done && r.done;
  }
  if (next == entries.size()) return done;
  if (programs[static_cast<std::size_t>(rank)].one_at_a_time && !done) return false;
  const program::entry& e = *entries[next];
  for (const running& r : active)
    if (r.staged_operation && !r.staged_operation->may_follow(e.op)) return false;
  core::transfer_formats formats = world.formats();
  core::staging settings = m_case.settings;
  settings.rank = rank;
  settings.size = m_case.p;
  core::staging_plan how = core::plan_staging(e.op, e.where, formats, settings);
  active.emplace_back();
  active.back().op = e.op;
  if (how.needed)
    active.back().staged_operation =
        std::make_unique<core::staged_operation>(e.op, std::move(how), below, &m_table, pool);
  else
    below.table->post(below.comm, &active.back().op, &active.back().request);
  ++next;
  return false;
}

std::string ranks::run() {
  std::vector<std::vector<running>> active(programs.size());
  std::vector<std::size_t> next(programs.size());
  std::vector<bool> done(programs.size());
  for (int turns = 0; std::find(done.begin(), done.end(), false) != done.end(); ++turns) {
    if (turns > 100000) return "never ends";
    const std::size_t r = m_random() % programs.size();
    done[r] = turn(static_cast<int>(r), active[r], next[r]);
  }
  active.clear();
  if (!world.error.empty()) return world.error;
  if (!world.leftovers().empty()) return world.leftovers();
  for (const program& one : programs)
    for (const auto& array : one.arrays)
      if (!array->as_expected()) return "memory is wrong";
  pool.trim();
  return pool.blocks() == 0 ? "" : "scratch memory was not given back";
}

std::vector<world_case> cases() {
  std::vector<world_case> result;
  for (int p : {1, 2, 3, 5})
    for (unsigned bits = 0; bits < 4; ++bits)
      for (std::uint64_t slice : {0, 1, 3, 64})
        for (bool by_limit : {false, true})
          for (bool native : {true, false}) {
            world_case c;
            c.p = p;
            c.device = bits & 1;
            c.strided = bits & 2;
            c.settings.comm_stages = c.device || (slice != 0 && !by_limit);
            c.settings.depth = 2;
            if (slice != 0) c.settings.chunk_bytes = 4 * slice;
            if (by_limit) c.rules.max_count = slice;
            if (!native)
              c.rules.supports = [](sucl_kind kind, sucl_type, sucl_op) {
                return kind != SUCL_KIND_GROUP && kind != SUCL_KIND_SENDRECV;
              };
            c.seed = static_cast<unsigned>(result.size()) + 1;
            result.push_back(c);
          }
  return result;
}

std::string describe(const world_case& c) {
  return "p=" + std::to_string(c.p) + " device=" + std::to_string(c.device) +
         " strided=" + std::to_string(c.strided) +
         " chunk=" + std::to_string(c.settings.chunk_bytes) +
         " limit=" + std::to_string(c.rules.max_count) +
         " native=" + std::to_string(!c.rules.supports);
}

TEST(staged_message, sendrecv_around_a_ring) {
  for (const world_case& c : cases())
    for (const bool in_place : {false, true}) {
      ranks all(c);
      const auto count = [&](int rank) { return static_cast<std::uint64_t>(rank * 37 % 101); };
      for (int r = 0; r < c.p; ++r) {
        const int to = (r + 1) % c.p;
        const int from = (r + c.p - 1) % c.p;
        program::entry& e = all.add(r, SUCL_KIND_SENDRECV);
        user_array& recv = all.array(r, 101);
        user_array& sent = in_place ? recv : all.array(r, 101);
        all.send(e, sent, count(r), to, r);
        all.receive(e, recv, count(from), from, from);
        if (in_place) e.op.flags = SUCL_FLAG_IN_PLACE;
        if (in_place) e.op.send = nullptr;
        if (in_place) e.where.send.reset();
      }
      ASSERT_EQ(all.run(), "") << describe(c) << (in_place ? " in place" : "");
    }
}

TEST(staged_message, group_of_many) {
  for (const world_case& c : cases()) {
    ranks all(c);
    for (int r = 0; r < c.p; ++r) {
      program::entry& group = all.add(r, SUCL_KIND_GROUP);
      const auto part = [&](sucl_kind kind, int peer, int number, std::uint64_t count) {
        program::entry e;
        e.op = group.op;
        e.op.kind = kind;
        e.op.tag = number % 2;
        user_array& memory = all.array(r, count);
        if (kind == SUCL_KIND_SEND)
          all.send(e, memory, count, peer, number);
        else
          all.receive(e, memory, count, peer, number);
        group.parts.push_back(e.op);
        group.where.parts.push_back({e.where.send, e.where.recv, {}});
      };
      // Two of the four messages of a pair have the same tag: their order tells them apart.
      for (int peer = 0; peer < c.p; ++peer)
        for (int k = 0; k < 4; ++k) {
          const auto count = static_cast<std::uint64_t>(k == 2 ? 0 : 50 * k + 3);
          part(SUCL_KIND_SEND, peer, 1000 + r * 4 + k, count);
        }
      for (int peer = 0; peer < c.p; ++peer)
        for (int k = 0; k < 4; ++k) {
          const auto count = static_cast<std::uint64_t>(k == 2 ? 0 : 50 * k + 3);
          part(SUCL_KIND_RECV, peer, 1000 + peer * 4 + k, count);
        }
      group.op.parts = group.parts.data();
      group.op.part_count = group.parts.size();
    }
    ASSERT_EQ(all.run(), "") << describe(c);
    const bool whole = c.settings.chunk_bytes > 1000 && c.rules.max_count == 0;
    EXPECT_EQ(all.world.groups, whole && !c.rules.supports ? c.p : 0) << describe(c);
  }
}

// No rank would receive if a send had to be received before what follows it may be posted.
TEST(staged_message, two_ranks_that_send_before_they_receive) {
  for (const world_case& c : cases()) {
    if (c.p != 2) continue;
    ranks all(c);
    for (int r = 0; r < 2; ++r) {
      all.send(all.add(r, SUCL_KIND_SEND), all.array(r, 100), 100, 1 - r, r);
      all.send(all.add(r, SUCL_KIND_SEND), all.array(r, 100), 100, 1 - r, 10 + r);
      all.receive(all.add(r, SUCL_KIND_RECV), all.array(r, 100), 100, 1 - r, 1 - r);
      all.receive(all.add(r, SUCL_KIND_RECV), all.array(r, 100), 100, 1 - r, 11 - r);
    }
    ASSERT_EQ(all.run(), "") << describe(c);
  }
}

TEST(staged_message, collectives_keep_their_order_among_messages) {
  for (const world_case& c : cases()) {
    if (c.p == 1) continue;
    ranks all(c);
    const auto broadcast = [&](int r, int number, std::uint64_t count) {
      program::entry& e = all.add(r, SUCL_KIND_BROADCAST);
      user_array& memory = all.array(r, count);
      if (r == 0)
        all.send(e, memory, count, 0, number);
      else
        all.receive(e, memory, count, 0, number);
      e.op.root = 0;
    };
    for (int r = 0; r < c.p; ++r) {
      if (r == 0) all.send(all.add(r, SUCL_KIND_SEND), all.array(r, 90), 90, 1, 7);
      broadcast(r, 1, 80);
      broadcast(r, 2, 10);
      broadcast(r, 3, 200);
      if (r == 1) all.receive(all.add(r, SUCL_KIND_RECV), all.array(r, 90), 90, 0, 7);
      broadcast(r, 4, 1);
    }
    ASSERT_EQ(all.run(), "") << describe(c);
  }
}

// The second rank joins the collective only once it has got the message that follows it.
TEST(staged_message, overtakes_a_collective_that_waits_for_it) {
  for (world_case c : cases()) {
    if (c.p != 2) continue;
    ranks all(c);
    for (int r = 0; r < 2; ++r) {
      const auto broadcast = [&] {
        program::entry& e = all.add(r, SUCL_KIND_BROADCAST);
        user_array& memory = all.array(r, 100);
        if (r == 0)
          all.send(e, memory, 100, 0, 1);
        else
          all.receive(e, memory, 100, 0, 1);
        e.op.root = 0;
      };
      if (r == 0) broadcast();
      if (r == 0) all.send(all.add(r, SUCL_KIND_SEND), all.array(r, 90), 90, 1, 7);
      if (r == 1) all.receive(all.add(r, SUCL_KIND_RECV), all.array(r, 90), 90, 0, 7);
      if (r == 1) broadcast();
    }
    all.programs[1].one_at_a_time = true;
    ASSERT_EQ(all.run(), "") << describe(c);
  }
}

TEST(staged_message, says_what_may_follow) {
  test::fake_world world(2, {}, 1);
  core::scratch_pool pool;
  core::transfer_formats formats = world.formats();
  core::staging s;
  s.size = 2;
  s.comm_stages = true;
  s.chunk_bytes = 4;
  s.depth = 2;
  std::int32_t data[4]{};
  sucl_operation op{};
  op.struct_size = sizeof(op);
  op.kind = SUCL_KIND_BROADCAST;
  op.type = SUCL_TYPE_INT32;
  op.element_size = 4;
  op.count = 4;
  op.send = data;
  core::staged_operation broadcast(op, core::plan_staging(op, {}, formats, s), world.channel_of(0),
                                   nullptr, pool);
  broadcast.step();
  EXPECT_EQ(world.posts, 2);
  EXPECT_FALSE(broadcast.all_posted());
  sucl_operation next{};
  for (const sucl_kind kind : {SUCL_KIND_BROADCAST, SUCL_KIND_BARRIER, SUCL_KIND_ALLTOALLV}) {
    next.kind = kind;
    EXPECT_FALSE(broadcast.may_follow(next));
  }
  for (const sucl_kind kind :
       {SUCL_KIND_SEND, SUCL_KIND_RECV, SUCL_KIND_SENDRECV, SUCL_KIND_GROUP}) {
    next.kind = kind;
    EXPECT_TRUE(broadcast.may_follow(next));
  }

  op.kind = SUCL_KIND_SEND;
  op.root = 1;
  core::staged_operation send(op, core::plan_staging(op, {}, formats, s), world.channel_of(0),
                              nullptr, pool);
  EXPECT_FALSE(send.may_follow(next));
  send.step();
  EXPECT_TRUE(send.all_posted());
  EXPECT_TRUE(send.may_follow(next));
}

}  // namespace
