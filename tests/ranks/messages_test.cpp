// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Sends and receives among other operations.
#include "job.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace sucl::testing {
namespace {

std::vector<int> pattern(std::size_t n, int key) {
  std::vector<int> v(n);
  std::iota(v.begin(), v.end(), key * 1000);
  return v;
}

// Rank 0 is inside a collective, which the library may carry by a call that blocks, while the last
// rank needs its messages before it joins.
TEST(messages, go_on_while_a_collective_blocks) {
  auto comm = the_job().aside.dup();
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
  auto comm = the_job().aside.dup();
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

}  // namespace
}  // namespace sucl::testing
