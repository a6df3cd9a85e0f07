// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Many operations of all sorts, several communicators, several threads.
#include "ranks/fixture.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

namespace sucl::testing {
namespace {

using sum_type = std::int64_t;

// What rank r puts into element i of operation number k.
sum_type input(int r, std::size_t i, int k) {
  return (r + 1) * 1000003 + static_cast<sum_type>(i) * 17 + k;
}

// One operation in flight and what it has to bring.
struct trial {
  std::vector<sum_type> send;
  std::vector<sum_type> recv;
  sycl::event done;
  std::function<sum_type(std::size_t)> expected;
  int number = 0;
};

// A stream of operations on one communicator. The plan is the same on every rank, the pace is not.
class stream {
 public:
  stream(communicator comm, unsigned seed)
      : m_comm(std::move(comm)), m_plan(seed), m_pace(seed * 31 + m_comm.rank()) {}

  void run(int operations) {
    for (int k = 0; k < operations; ++k) {
      if (m_pace() % 16 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(m_pace() % 200));
      issue(k);
      if (m_flight.size() > 32) finish_one();
    }
    while (!m_flight.empty()) finish_one();
  }

 private:
  void issue(int k) {
    const int p = m_comm.size();
    const int r = m_comm.rank();
    const auto choice = m_plan() % 7;
    const bool blocks = m_plan() % 4 == 0;
    const int root = static_cast<int>(m_plan() % static_cast<unsigned>(p));
    const std::size_t n = m_plan() % 8 == 0 ? m_plan() % 20000 : m_plan() % 50;
    auto t = std::make_unique<trial>();
    t->number = k;
    t->send.resize(n);
    for (std::size_t i = 0; i < n; ++i) t->send[i] = input(r, i, k);
    t->recv.resize(choice == 3 ? n * static_cast<std::size_t>(p) : n, -1);
    const auto go = [&](auto&& call) {
      if (blocks)
        call(m_comm.blocking());
      else
        t->done = call(m_comm);
    };
    const auto* from = t->send.data();
    auto* to = t->recv.data();
    const auto sum_of = [k](int ranks, std::size_t i) {
      sum_type sum = 0;
      for (int s = 0; s < ranks; ++s) sum += input(s, i, k);
      return sum;
    };
    switch (choice) {
      case 0:
        go([&](auto&& c) { return c.allreduce(from, to, n, op::sum); });
        t->expected = [=](std::size_t i) { return sum_of(p, i); };
        break;
      case 1:
        if (r == root) t->recv = t->send;
        to = t->recv.data();
        go([&](auto&& c) { return c.broadcast(to, n, root); });
        t->expected = [=](std::size_t i) { return input(root, i, k); };
        break;
      case 2:
        go([&](auto&& c) { return c.reduce(from, to, n, op::max, root); });
        t->expected = [=](std::size_t i) { return r == root ? input(p - 1, i, k) : -1; };
        break;
      case 3:
        go([&](auto&& c) { return c.allgather(from, to, n); });
        t->expected = [=](std::size_t i) { return input(static_cast<int>(i / n), i % n, k); };
        break;
      case 4:
        go([&](auto&& c) { return c.scan(from, to, n, op::sum); });
        t->expected = [=](std::size_t i) { return sum_of(r + 1, i); };
        break;
      case 5:
        go([&](auto&& c) {
          return c.sendrecv(from, n, (r + 1) % p, to, n, (r + p - 1) % p, k % 100);
        });
        t->expected = [=](std::size_t i) { return input((r + p - 1) % p, i, k); };
        break;
      default:
        t->recv.clear();
        go([&](auto&& c) { return c.barrier(); });
        break;
    }
    m_flight.push_back(std::move(t));
  }

  void finish_one() {
    // Mostly the oldest; any order of looking is allowed.
    const std::size_t at = m_pace() % 4 == 0 ? m_pace() % m_flight.size() : 0;
    trial& t = *m_flight[at];
    t.done.wait();
    for (std::size_t i = 0; i < t.recv.size(); ++i)
      if (t.recv[i] != t.expected(i)) {
        ADD_FAILURE() << "operation " << t.number << " on rank " << m_comm.rank() << ", element "
                      << i << ": " << t.recv[i] << " instead of " << t.expected(i);
        break;
      }
    m_flight.erase(m_flight.begin() + static_cast<std::ptrdiff_t>(at));
  }

  communicator m_comm;
  std::mt19937 m_plan;
  std::mt19937 m_pace;
  std::vector<std::unique_ptr<trial>> m_flight;
};

TEST(many, mixed_operations_back_to_back) {
  rank_fixture& j = fixture();
  stream(j.world, 1).run(2000);
}

TEST(many, in_order_queue) { stream(fixture().in_order_world, 2).run(150); }

TEST(many, threads_with_a_communicator_each) {
  rank_fixture& j = fixture();
  if (has_one_lane(j.queue)) GTEST_SKIP() << one_lane;
  std::vector<communicator> comms;
  comms.push_back(j.world.dup());
  comms.push_back(j.in_order_world.dup());
  comms.push_back(j.aside.dup());
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < comms.size(); ++t)
    threads.emplace_back([&, t] { stream(comms[t], 10 + t).run(100); });
  for (auto& t : threads) t.join();
}

TEST(many, communicators_come_and_go) {
  rank_fixture& j = fixture();
  for (int round = 0; round < 5; ++round) {
    auto comm = j.world.dup();
    auto half = comm.split(comm.rank() % 2, -comm.rank());
    stream(half, 20).run(20);
    std::vector<int> x(100, comm.rank());
    auto done = comm.allreduce(x.data(), x.size(), op::max);
    comm = {};  // with an operation in flight
    done.wait();
    EXPECT_EQ(x[99], j.world.size() - 1);
  }
}

}  // namespace
}  // namespace sucl::testing
