// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Agreement of members that die: in drawn orders of all that may happen, and over connections.
#include "agreement.hpp"
#include "support/jobs/tcp_job.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>

namespace sucl {
namespace {

using testing::outcome;
using testing::tcp_job;
using testing::whole_job;

/// Members whose steps, messages and ends come in an order that a seed draws. What one member sends
/// to another stays in order; what a dead one has sent may arrive or not.
class drawn_agreement {
 public:
  drawn_agreement(std::uint32_t seed, int size)
      : m_draw(seed), m_size(size), m_members(static_cast<std::size_t>(size)) {
    for (auto& m : m_members) m.flags = static_cast<std::uint32_t>(1 + 2 * below(2) + 4 * below(2));
  }

  void run() {
    int deaths = below(m_size);
    for (int steps = 0; steps < 20'000 && !all_know(); ++steps) {
      const int r = below(m_size);
      switch (below(6)) {
        case 0: enter(r); break;
        case 1: learn(r); break;
        case 2:
          if (deaths > 0 && below(8) == 0) {
            m_members[index(r)].alive = false;
            --deaths;
          }
          break;
        default: deliver(r, below(m_size));
      }
    }
  }

  void check() const {
    std::optional<tcp::decision> first;
    for (const member& m : m_members) {
      EXPECT_TRUE(!m.alive || m.part.result());
      if (!m.part.result()) continue;
      if (!first) first = m.part.result();
      EXPECT_TRUE(*m.part.result() == *first);  // also of those that have died since
    }
    if (!first) return;
    ASSERT_EQ(first->failed.size(), index(m_size));
    for (int r = 0; r < m_size; ++r) {
      const member& m = m_members[index(r)];
      EXPECT_TRUE(!first->failed[index(r)] || !m.alive) << r;
      EXPECT_TRUE(m.entered || first->failed[index(r)]) << r;
      EXPECT_TRUE(first->failed[index(r)] || (first->flags & ~m.flags) == 0) << r;
    }
  }

 private:
  struct member {
    tcp::agreement part;
    std::uint32_t flags = 0;
    bool entered = false, alive = true;
  };

  static std::size_t index(int r) { return static_cast<std::size_t>(r); }
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(m_draw); }

  bool all_know() const {
    for (const member& m : m_members)
      if (m.alive && !m.part.result()) return false;
    return true;
  }

  void send(int from, const std::vector<tcp::paxos_message>& out) {
    for (const auto& m : out) m_on_the_way[{from, m.to}].push_back(m);
  }

  void enter(int r) {
    member& m = m_members[index(r)];
    if (!m.alive || m.entered) return;
    m.entered = true;
    m.part.enter(r, m_size, m.flags, 100 + static_cast<std::uint64_t>(r));
    send(r, m.part.advance());
  }

  void learn(int r) {
    member& m = m_members[index(r)];
    const int dead = below(m_size);
    if (!m.alive || !m.entered || m_members[index(dead)].alive) return;
    m.part.note_failed(dead);
    send(r, m.part.advance());
  }

  void deliver(int from, int to) {
    auto& line = m_on_the_way[{from, to}];
    if (line.empty()) return;
    if (!m_members[index(from)].alive && below(3) == 0) return line.clear();
    const auto next = line.front();
    line.pop_front();
    member& m = m_members[index(to)];
    if (m.alive) send(to, m.part.take(from, through_a_frame(next)));
  }

  // As the other side reads it.
  static tcp::paxos_message through_a_frame(const tcp::paxos_message& m) {
    tcp::writer out(tcp::frame_type::agreement);
    m.put_into(out);
    const auto frame = out.frame();
    tcp::reader in(frame->data() + tcp::frame_header_bytes,
                   frame->size() - tcp::frame_header_bytes);
    const auto read = tcp::paxos_message::take_from(in);
    EXPECT_TRUE(read);
    return read.value_or(m);
  }

  std::mt19937 m_draw;
  int m_size;
  std::vector<member> m_members;
  std::map<std::pair<int, int>, std::deque<tcp::paxos_message>> m_on_the_way;
};

TEST(agreement, is_the_same_for_all_whichever_member_dies) {
  for (std::uint32_t seed = 0; seed < 4000; ++seed) {
    const int size = 1 + static_cast<int>(seed % 7);
    drawn_agreement drawn(seed, size);
    drawn.run();
    drawn.check();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
}

TEST(agreement, refuses_messages_that_make_no_sense) {
  tcp::writer empty(tcp::frame_type::agreement);
  tcp::paxos_message m;
  m.step = tcp::paxos_step::accept;  // of nothing
  m.put_into(empty);
  const auto frame = empty.frame();
  tcp::reader in(frame->data() + tcp::frame_header_bytes, frame->size() - tcp::frame_header_bytes);
  EXPECT_FALSE(tcp::paxos_message::take_from(in));
  tcp::reader cut(frame->data() + tcp::frame_header_bytes, 7);
  EXPECT_FALSE(tcp::paxos_message::take_from(cut));
}

/// What the members that live have agreed on; each exchanges with the others afterwards.
struct member_result {
  std::optional<tcp::decision> agreed;
  std::vector<int> gathered;
};

struct is_killed : std::runtime_error {
  is_killed() : std::runtime_error("killed") {}
};

// Each rank of `killed` dies without a goodbye in its look number `looks`.
std::vector<member_result> agree_and_exchange(int size, const std::vector<int>& killed, int looks) {
  tcp_job job;
  auto all = job.start(whole_job(size));
  std::vector<member_result> results(static_cast<std::size_t>(size));
  tcp_job::each(size, [&](int r) {
    outcome& own = all[static_cast<std::size_t>(r)];
    member_result& result = results[static_cast<std::size_t>(r)];
    sucl_group* world = own.process->world();
    const bool dies = std::find(killed.begin(), killed.end(), r) != killed.end();
    int last_poll = 0;
    try {
      result.agreed = own.process->agree(*world, r == 1 ? 5u : 7u, [&](int) {
        if (dies && ++last_poll > looks * (size - 1)) throw is_killed();
        return false;
      });
    } catch (const is_killed&) {
      own.process->free(world);
      own.process.reset();
      return;
    }
    sucl_group* left = own.process->shrink(*world);
    result.gathered.resize(static_cast<std::size_t>(left->size));
    try {
      own.process->finish(*left,
                          own.process->start_exchange(*left, &r, result.gathered.data(), sizeof r));
    } catch (const tcp::problem&) {
      result.gathered.clear();  // one that was there when they agreed has died since
    }
  });
  return results;
}

TEST(tcp_agreement, of_all) {
  for (const member_result& r : agree_and_exchange(5, {}, 0)) {
    ASSERT_TRUE(r.agreed);
    EXPECT_EQ(r.agreed->flags, 5u);
    EXPECT_EQ(r.agreed->failed, std::vector<std::uint8_t>(5, 0));
    EXPECT_EQ(r.gathered, (std::vector<int>{0, 1, 2, 3, 4}));
  }
}

TEST(tcp_agreement, of_those_that_are_left) {
  const auto results = agree_and_exchange(6, {0, 3}, 0);
  for (const int r : {1, 2, 4, 5}) {
    const member_result& one = results[static_cast<std::size_t>(r)];
    ASSERT_TRUE(one.agreed) << r;
    EXPECT_EQ(one.agreed->failed, (std::vector<std::uint8_t>{1, 0, 0, 1, 0, 0})) << r;
    EXPECT_EQ(one.gathered, (std::vector<int>{1, 2, 4, 5})) << r;
  }
}

// The coordinator and its successor die at some stage of it.
TEST(tcp_agreement, while_coordinators_die) {
  for (int looks = 0; looks < 6; ++looks) {
    const auto results = agree_and_exchange(5, {0, 1}, looks);
    std::optional<tcp::decision> first;
    for (const int r : {2, 3, 4}) {
      const auto& agreed = results[static_cast<std::size_t>(r)].agreed;
      ASSERT_TRUE(agreed) << r;
      if (!first) first = agreed;
      EXPECT_TRUE(*agreed == *first) << r;
      EXPECT_EQ((std::vector<std::uint8_t>(agreed->failed.begin() + 2, agreed->failed.end())),
                (std::vector<std::uint8_t>{0, 0, 0}));
    }
  }
}

}  // namespace
}  // namespace sucl
