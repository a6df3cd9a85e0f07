// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Sends and receives among other operations.
#include "ranks/fixture.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <thread>

namespace sucl::testing {
namespace {

std::vector<int> pattern(std::size_t n, int key) {
  std::vector<int> v(n);
  std::iota(v.begin(), v.end(), key * 1000);
  return v;
}

// Rank 0 is inside a collective, which the library may execute by a call that blocks, while the
// last rank needs its messages before it joins.
TEST(messages, go_on_while_a_collective_blocks) {
  auto comm = fixture().aside.dup();
  const int last = comm.size() - 1;
  if (last == 0) GTEST_SKIP() << "needs two ranks";
  for (const std::size_t n : {std::size_t{1}, std::size_t{300000}}) {
    std::vector<int> in(n, -1), out(n, -1), sum(20000, 1);
    const auto there = pattern(n, 1), back = pattern(n, 2);
    sycl::event received, sent;
    if (comm.rank() == 0) {
      received = comm.recv(in.data(), n, last, 3);
      sent = comm.send(there.data(), n, last, 4);
    } else if (comm.rank() == last) {
      comm.blocking().recv(out.data(), n, 0, 4);
      comm.blocking().send(back.data(), n, 0, 3);
      EXPECT_EQ(out, there);
    }
    comm.blocking().broadcast(sum.data(), sum.size(), 0);
    comm.blocking().allreduce(sum.data(), sum.size(), op::sum);
    EXPECT_EQ(sum.back(), comm.size());
    received.wait();
    sent.wait();
    if (comm.rank() == 0) {
      EXPECT_EQ(in, back);
    }
  }
}

// All ranks with all ranks, themselves too, in groups of both forms, with the tags in opposite
// order at both ends and collectives in between; on ordinary memory and on the communicator's.
TEST(messages, in_groups_among_collectives) {
  auto comm = fixture().aside.dup();
  const int p = comm.size(), r = comm.rank();
  constexpr int tags = 3;
  const std::size_t most = 100000, all = most * tags * static_cast<std::size_t>(p);
  int* lent = comm.allocate<int>(2 * all);
  std::mt19937 random(7);  // the same on every rank
  for (int round = 0; round < 12; ++round) {
    const std::size_t n = random() % (round % 3 == 0 ? most : 3000);
    std::vector<int> own(2 * all, -1);
    const bool uses_lent = (round + r) % 2 == 0;
    int* send = uses_lent ? lent : own.data();
    int* recv = send + all;
    const auto at = [&](int peer, int tag) {
      return static_cast<std::size_t>(peer * tags + tag) * most;
    };
    const auto key = [&](int from, int to, int tag) { return round + from * 31 + to * 7 + tag; };
    group g(comm);
    for (int tag = 0; tag < tags; ++tag)
      for (int peer = 0; peer < p; ++peer) {
        const auto v = pattern(n, key(r, peer, tag));
        std::copy(v.begin(), v.end(), send + at(peer, tag));
        g.send(static_cast<const int*>(send) + at(peer, tag), n, peer, tag);
      }
    for (int tag = tags - 1; tag >= 0; --tag)
      for (int peer = p - 1; peer >= 0; --peer) g.recv(recv + at(peer, tag), n, peer, tag);
    int sum = 1;
    sycl::event done;
    if ((round + r) % 3 != 0)
      done = g.submit();
    else
      g.run();
    comm.blocking().allreduce(&sum, 1, op::sum);
    EXPECT_EQ(sum, p);
    done.wait();
    for (int tag = 0; tag < tags; ++tag)
      for (int peer = 0; peer < p; ++peer) {
        const auto v = pattern(n, key(peer, r, tag));
        EXPECT_TRUE(std::equal(v.begin(), v.end(), recv + at(peer, tag)))
            << n << " elements from rank " << peer << ", tag " << tag << ", round " << round;
      }
  }
  comm.blocking().barrier();
  comm.deallocate(lent);
}

// The same calls over and over, on the same memory: what they carry changes, and at times their
// counts and tags do.
TEST(messages, of_repeated_calls_are_those_of_each_call) {
  auto comm = fixture().aside.dup();
  const int p = comm.size(), r = comm.rank(), next = (r + 1) % p, before = (r + p - 1) % p;
  constexpr std::size_t most = 20000;
  std::vector<int> send(most), recv(most), group_send(2 * most), group_recv(2 * most);
  const auto holds = [](const int* memory, const std::vector<int>& v) {
    return std::equal(v.begin(), v.end(), memory);
  };
  for (int round = 0; round < 400; ++round) {
    const std::size_t n = round % 50 == 49 ? most : round % 7 == 0 ? 3 : 20;
    const int tag = round % 11 == 0 ? 1 : 0;
    const auto put = [&](std::vector<int>& to, std::size_t at, int key) {
      const auto v = pattern(n, key);
      std::copy(v.begin(), v.end(), to.begin() + static_cast<std::ptrdiff_t>(at));
    };
    put(send, 0, r + round);
    comm.blocking().sendrecv(send.data(), n, next, recv.data(), n, before, tag);
    EXPECT_TRUE(holds(recv.data(), pattern(n, before + round))) << "sendrecv, round " << round;

    put(group_send, 0, r + round + 1);
    put(group_send, most, r + round + 2);
    group g(comm);
    g.recv(group_recv.data(), n, before, tag);
    g.recv(group_recv.data() + most, n, next, 2);
    g.send(static_cast<const int*>(group_send.data()), n, next, tag);
    g.send(static_cast<const int*>(group_send.data()) + most, n, before, 2);
    g.run();
    EXPECT_TRUE(holds(group_recv.data(), pattern(n, before + round + 1))) << "group, " << round;
    EXPECT_TRUE(holds(group_recv.data() + most, pattern(n, next + round + 2))) << round;

    if (p == 1) continue;
    const int last = p - 1;
    if (r == 0) comm.blocking().send(send.data(), n, last, tag);
    if (r == last) {
      comm.blocking().recv(recv.data(), n, 0, tag);
      EXPECT_TRUE(holds(recv.data(), pattern(n, round))) << "recv, round " << round;
    }
  }
}

TEST(messages, of_repeated_calls_with_wrong_lengths_fail_alone) {
  auto comm = fixture().aside.dup();
  if (comm.size() == 1) GTEST_SKIP() << "needs two ranks";
  std::vector<int> memory(8, -1);
  for (int round = 0; round < 20; ++round) {
    const bool wrong = round % 3 == 2;
    if (comm.rank() == 0) {
      memory.assign(8, round);
      comm.blocking().send(memory.data(), wrong ? 7 : 8, 1);
    } else if (comm.rank() == 1) {
      if (!wrong) {
        comm.blocking().recv(memory.data(), 8, 0);
        EXPECT_EQ(memory, std::vector<int>(8, round));
        continue;
      }
      try {
        comm.blocking().recv(memory.data(), 8, 0);
        ADD_FAILURE() << "a message of 7 elements was received as 8";
      } catch (const error& e) {
        EXPECT_EQ(e.info().code, errc::invalid_count) << e.what();
        EXPECT_EQ(e.info().rank, 1);
      }
    }
  }
}

// A thread of rank 0 waits for a message that the last rank sends only once it has one from another
// thread of rank 0, which comes later.
TEST(messages, of_another_thread_overtake_a_blocking_receive) {
  auto comm = fixture().aside.dup();
  const int last = comm.size() - 1;
  if (last == 0) GTEST_SKIP() << "needs two ranks";
  for (int round = 0; round < 5; ++round) {
    int waited_for = -1, request = round;
    if (comm.rank() == 0) {
      std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        comm.blocking().send(&request, 1, last, 2);
      });
      comm.blocking().recv(&waited_for, 1, last, 1);
      later.join();
      EXPECT_EQ(waited_for, round + 100);
    } else if (comm.rank() == last) {
      comm.blocking().recv(&waited_for, 1, 0, 2);
      EXPECT_EQ(waited_for, round);
      request = round + 100;
      comm.blocking().send(&request, 1, 0, 1);
    }
  }
}

}  // namespace
}  // namespace sucl::testing