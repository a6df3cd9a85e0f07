// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Plans of several nodes in waves: kernels, with threads as work items, within each node, and
// copies between them.
#include "backends/device_kernels/plans/align_scratch.hpp"
#include "base/error.hpp"
#include "core/operation/operation.hpp"
#include "unit/device_kernels/drawn_plan.hpp"
#include "unit/device_kernels/thread_device.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace {

using namespace sucl;
using namespace sucl::testing;

using element = std::int32_t;

// Messages between ranks of different nodes, in order.
class network {
 public:
  void send(int from, int to, const std::byte* data, std::uint64_t bytes) {
    const std::lock_guard lock(m_mutex);
    m_sent[{from, to}].emplace_back(data, data + bytes);
    m_came.notify_all();
  }
  void receive(int from, int to, std::byte* data, std::uint64_t bytes) {
    std::unique_lock lock(m_mutex);
    auto& queue = m_sent[{from, to}];
    if (!m_came.wait_for(lock, std::chrono::seconds(60), [&] { return !queue.empty(); }))
      return void(ADD_FAILURE() << "no message from rank " << from << " to rank " << to);
    ASSERT_EQ(queue.front().size(), bytes);
    std::memcpy(data, queue.front().data(), bytes);
    queue.pop_front();
  }
  bool empty() const {
    for (const auto& [pair, queue] : m_sent)
      if (!queue.empty()) return false;
    return true;
  }

 private:
  std::mutex m_mutex;
  std::condition_variable m_came;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> m_sent;
};

// A rank of several nodes.
struct wave_rank {
  const kernel_rank& j;
  const std::vector<int>& node_of;
  int node, rank;
  network& between;

  std::vector<int> members() const {
    std::vector<int> all;
    for (std::size_t r = 0; r < node_of.size(); ++r)
      if (node_of[r] == node) all.push_back(static_cast<int>(r));
    return all;
  }

  void run_wave(const plan::wave_division& division, const plan::node_part& part,
                std::uint32_t wave, sucl_operation o, std::byte* scratch) const {
    if (part.occupied[wave]) {
      o.root = static_cast<int>(wave);
      const flight done = sucl::testing::run(j.kernels, o);
      ASSERT_EQ(done.status, SUCL_SUCCESS) << done.error.message;
    }
    const auto at = [&](const plan::network_message& m) {
      std::byte* base = m.where == plan::space::scratch ? scratch
                        : m.where == plan::space::recv
                            ? static_cast<std::byte*>(o.recv)
                            : static_cast<std::byte*>(const_cast<void*>(o.send));
      return base + m.offset;
    };
    const auto& messages = division.messages[static_cast<std::size_t>(rank)];
    for (const auto& m : messages)
      if (m.wave == wave && m.sends) between.send(rank, m.peer, at(m), m.bytes);
    for (const auto& m : messages)
      if (m.wave == wave && !m.sends) between.receive(m.peer, rank, at(m), m.bytes);
  }

  void run_drawn(unsigned seed) const {
    run(draw_plan(static_cast<int>(node_of.size()), seed), seed);
  }

  void run(const drawn& d, unsigned seed) const {
    const int ranks = static_cast<int>(node_of.size());
    core::draft_plan plan =
        core::compose({d.what, d.how, type::int32, 4}, rank, ranks, base::determinism::ranks);
    plan.schedule = core::align_scratch(std::move(plan.schedule));
    core::prove(plan);
    const auto division = plan::divide_in_waves(plan.schedule, node_of);
    const auto part = plan::part_of_node(plan.schedule, division, members());
    auto stored = std::make_unique<core::stored_plan>();
    stored->code = core::lower_for_device(part, j.info.rank, j.comm().plan_limits());
    stored->type = SUCL_TYPE_INT32;
    stored->op = static_cast<sucl_op>(plan.reduction);
    j.comm().plans().allocate(*stored, j.info.size, *j.info.oob);
    auto* scratch = static_cast<std::byte*>(stored->scratch.get());
    j.comm().plans().add(seed + 1, std::move(stored));
    const auto self = static_cast<std::size_t>(rank);
    for (int round = 0; round < 3; ++round) {
      std::vector<element> send = d.outcome.of[0][self], recv(d.recv_size, -5);
      auto o = operation(kind::barrier, type::int32, d.send_size);
      o.kind = core::compiled_plan_kind;
      o.plan = seed + 1;
      o.recv_count = d.recv_size;
      o.send = send.data();
      o.recv = recv.data();
      for (std::uint32_t wave = 0; wave < division.waves; ++wave)
        run_wave(division, part, wave, o, scratch);
      for (std::size_t i = 0; i < recv.size(); ++i) {
        const bool known = !d.outcome.known[1][self][i].empty();
        ASSERT_EQ(recv[i], known ? d.outcome.of[1][self][i] : -5)
            << "seed " << seed << ", rank " << rank << ", round " << round << ", element " << i;
      }
    }
    j.comm().plans().remove(seed + 1);
  }
};

void for_nodes(const std::vector<int>& sizes, peer_access how,
               const std::function<void(const wave_rank&)>& body) {
  network between;
  std::vector<int> node_of;
  for (std::size_t node = 0; node < sizes.size(); ++node)
    node_of.insert(node_of.end(), static_cast<std::size_t>(sizes[node]), static_cast<int>(node));
  std::vector<std::thread> nodes;
  for (std::size_t node = 0; node < sizes.size(); ++node)
    nodes.emplace_back([&, node] {
      const int first = std::accumulate(sizes.begin(), sizes.begin() + static_cast<long>(node), 0);
      for_devices(sizes[node], how, [&](const kernel_rank& j) {
        body({j, node_of, static_cast<int>(node), first + j.info.rank, between});
      });
    });
  for (auto& n : nodes) n.join();
  EXPECT_TRUE(between.empty());
}

class kernel_waves : public ::testing::TestWithParam<std::tuple<std::vector<int>, peer_access>> {};
INSTANTIATE_TEST_SUITE_P(nodes, kernel_waves,
                         ::testing::Values(std::tuple{std::vector{1, 1}, peer_access::all},
                                           std::tuple{std::vector{2, 2}, peer_access::all},
                                           std::tuple{std::vector{2, 1}, peer_access::none},
                                           std::tuple{std::vector{3, 2}, peer_access::some},
                                           std::tuple{std::vector{1, 2, 1}, peer_access::all}));

TEST_P(kernel_waves, do_what_compositions_mean) {
  const auto& [sizes, how] = GetParam();
  for_nodes(sizes, how, [&](const wave_rank& j) {
    for (unsigned seed = 200; seed < 225; ++seed) j.run_drawn(seed);
  });
}

// Stripes of a block reach the ranks that pass them on in scratch, of any length, and so by any
// protocol.
TEST(waves, pass_on_what_another_rank_of_the_node_has_sent) {
  for (const std::size_t n : {100u, 1000u, 9001u}) {
    composition c{3};
    drawn d{c, {{2, 2}, {}, 2, 1, 2}, {3, n, 3 * n, 0}, n, 3 * n};
    for (int r = 0; r < 3; ++r) {
      const std::size_t at = static_cast<std::size_t>(r) * n;
      d.what.multicast(c.send(0, n), c.recv(at, n), r, {2});
      for (std::size_t i = 0; i < n; ++i) {
        const element value = static_cast<element>(r * 100000 + static_cast<int>(i));
        d.outcome.of[0][static_cast<std::size_t>(r)][i] = value;
        d.outcome.of[1][2][at + i] = value;
        d.outcome.known[1][2][at + i] = {{r, 0}};
      }
    }
    for_nodes({2, 1}, peer_access::all,
              [&](const wave_rank& j) { j.run(d, static_cast<unsigned>(n)); });
  }
}

// What a rank of one node sends in a wave one of another receives in that wave, in the same order.
TEST(waves, have_the_same_messages_at_both_ends) {
  const std::vector<int> node_of{0, 0, 1, 1, 2};
  std::uint32_t most = 0;
  for (unsigned seed = 300; seed < 400; ++seed) {
    const drawn d = draw_plan(5, seed);
    core::draft_plan plan =
        core::compose({d.what, d.how, type::int32, 4}, 0, 5, base::determinism::ranks);
    const auto division = plan::divide_in_waves(plan.schedule, node_of);
    most = std::max(most, division.waves);
    std::map<std::pair<int, int>, std::vector<std::pair<std::uint32_t, std::uint64_t>>> sent, taken;
    for (std::size_t r = 0; r < node_of.size(); ++r) {
      std::uint32_t last = 0;
      for (const auto& m : division.messages[r]) {
        EXPECT_GE(m.wave, last);
        EXPECT_LT(m.wave, division.waves);
        EXPECT_NE(node_of[r], node_of[static_cast<std::size_t>(m.peer)]);
        last = m.wave;
        const int self = static_cast<int>(r);
        (m.sends ? sent[{self, m.peer}] : taken[{m.peer, self}]).push_back({m.wave, m.bytes});
      }
    }
    EXPECT_EQ(sent, taken) << "seed " << seed;
  }
  EXPECT_GT(most, 3u);
}

// A plan whose ranks reach into each other's memory has no waves.
TEST(waves, refuse_plans_of_shared_memory) {
  plan::schedule s;
  s.what.ranks = 2;
  s.ranks.resize(2);
  plan::instruction signal;
  signal.op = plan::opcode::signal;
  signal.peer = 1;
  s.ranks[0].channels = {{signal}};
  try {
    (void)plan::divide_in_waves(s, {0, 1});
    ADD_FAILURE() << "no error";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::unsupported);
    EXPECT_NE(std::string(e.what()).find("signal"), std::string::npos) << e.what();
  }
}

}  // namespace
