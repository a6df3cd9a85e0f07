// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Operations that are made once, and memory that all ranks of a node reach.
#include "base/system/available_memory.hpp"
#include "ranks/fixture.hpp"

#include <algorithm>
#include <numeric>

namespace sucl::testing {
namespace {

struct repeated : ::testing::Test {
  rank_fixture& j = fixture();
  const int rank = j.world.rank();
  const int size = j.world.size();
};

TEST_F(repeated, allreduce_in_both_forms) {
  constexpr std::size_t n = 1000;
  shared<int> in(n, j.queue), out(n, j.queue);
  auto sum = j.world.persistent().allreduce(in.get(), out.get(), n, op::sum);
  for (int round = 0; round < 50; ++round) {
    for (std::size_t i = 0; i < n; ++i) in[i] = rank + round;
    if (round % 2)
      sum.run();
    else
      sum.start().wait();
    const int want = size * round + size * (size - 1) / 2;
    ASSERT_EQ(out[0], want);
    ASSERT_EQ(out[n - 1], want);
  }
}

TEST_F(repeated, keeps_its_own_counts) {
  std::vector<int> mine(static_cast<std::size_t>(rank) + 1, rank), all;
  persistent gather;
  {
    std::vector<std::size_t> counts, displs;
    for (int r = 0; r < size; ++r) {
      displs.push_back(all.size());
      counts.push_back(static_cast<std::size_t>(r) + 1);
      all.resize(all.size() + counts.back());
    }
    gather = j.world.persistent().allgatherv(mine.data(), mine.size(), all.data(), counts, displs);
  }
  for (int round = 0; round < 3; ++round) {
    std::fill(all.begin(), all.end(), -1);
    gather.run();
    auto at = all.begin();
    for (int r = 0; r < size; ++r)
      for (int k = 0; k <= r; ++k) ASSERT_EQ(*at++, r);
  }
}

TEST_F(repeated, buffers) {
  sycl::buffer<int> data{sycl::range{64}};
  auto b = j.world.persistent().broadcast(data, 0);
  for (int round = 1; round < 4; ++round) {
    if (rank == 0)
      for (auto& x : sycl::host_accessor(data)) x = round;
    b.start();
    ASSERT_EQ(sycl::host_accessor(data)[63], round);
  }
}

TEST_F(repeated, wrong_calls_throw_when_they_are_made) {
  int x = 0;
  EXPECT_THROW(j.world.persistent().broadcast(&x, 1, size), error);
  EXPECT_THROW(persistent().run(), error);
  EXPECT_THROW(persistent().start(), error);
}

TEST_F(repeated, memory_that_all_ranks_reach) {
  const auto p = static_cast<std::size_t>(size);
  for (const std::size_t n : {std::size_t{1}, std::size_t{5000}, std::size_t{300001}}) {
    auto comm = j.world;
    int* in = comm.allocate<int>(n);
    int* out = comm.allocate<int>(n * p);
    EXPECT_EQ(in[n - 1], 0);
    std::iota(in, in + n, rank);
    comm.blocking().allgather(in, out, n);
    for (std::size_t r = 0; r < p; ++r) ASSERT_EQ(out[r * n + n - 1], static_cast<int>(r + n - 1));
    comm.allreduce(in, n, op::max).wait();
    ASSERT_EQ(in[n - 1], static_cast<int>(n + p - 2));
    // One rank alone has ordinary memory.
    std::vector<int> plain(n, rank);
    comm.blocking().allreduce(rank == size - 1 ? plain.data() : in, out, n, op::min);
    ASSERT_EQ(out[0], size - 1);
    EXPECT_THROW(comm.deallocate(plain.data()), error);
    comm.deallocate(in);
    comm.deallocate(out);
  }
}

// A root has room for the blocks of all, the others for their own.
TEST_F(repeated, memory_of_sizes_that_differ) {
  const auto p = static_cast<std::size_t>(size), r = static_cast<std::size_t>(rank);
  auto comm = j.world.dup();
  auto b = comm.blocking();
  for (const std::size_t n :
       {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{90001}})
    for (const int root : {0, size - 1}) {
      const bool at_root = rank == root;
      int* whole = comm.allocate<int>(at_root ? n * p : 0);
      int* part = comm.allocate<int>(n + r);
      for (std::size_t i = 0; at_root && i < n * p; ++i) whole[i] = static_cast<int>(i);
      b.scatter(whole, part, n, root);
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(part[i], static_cast<int>(r * n + i));
      b.allreduce(part + r, n, op::max);
      for (std::size_t i = 0; i < n; ++i) part[i] = rank;
      b.gather(part, whole, n, root);
      for (std::size_t i = 0; at_root && i < n * p; ++i)
        ASSERT_EQ(whole[i], static_cast<int>(i / n));
      if (size > 1 && at_root) b.send(whole, n * p, rank == 0 ? 1 : rank - 1);
      if (size > 1 && rank == (root == 0 ? 1 : root - 1)) {
        std::vector<int> got(n * p);
        b.recv(got.data(), n * p, root);
        for (std::size_t i = 0; i < n * p; ++i) ASSERT_EQ(got[i], static_cast<int>(i / n));
      }
      comm.deallocate(part);
      comm.deallocate(whole);
    }
}

// Every rank is told, and goes on.
TEST_F(repeated, memory_that_one_rank_cannot_have) {
  auto comm = j.world.dup();
  const auto beyond = std::size_t{1} << 61;
  for (const int odd : {0, size - 1}) {
    const std::size_t n = rank == odd ? beyond : 8;
    expect_error(errc::out_of_memory, [&] { (void)comm.allocate<double>(n); });
    expect_error(errc::out_of_memory, [&] { (void)comm.allocate<std::byte>(n); });
  }
  double* x = comm.allocate<double>(1);
  *x = 1;
  comm.blocking().allreduce(x, 1, op::sum);
  EXPECT_EQ(*x, size);
}

// What the machine has not is refused, not given out to fail when it is written to: neither at once
// nor in pieces.
TEST_F(repeated, memory_that_the_machine_has_not) {
  auto comm = j.world.dup();
  constexpr auto tebi = std::size_t{1} << 40;
  const auto all = static_cast<std::size_t>(base::available_memory());
  for (const std::size_t n : {64 * tebi, 2 * all})
    expect_error(errc::out_of_memory, [&] { (void)comm.allocate<std::byte>(n); });
  const std::size_t odd = rank == 0 ? 64 * tebi : 8;
  expect_error(errc::out_of_memory, [&] { (void)comm.allocate<std::byte>(odd); });
  const auto members = comm.members();
  const auto here = std::count_if(members.begin(), members.end(), [&](const member& m) {
    return m.node == members[static_cast<std::size_t>(rank)].node;
  });
  const std::size_t piece = all / static_cast<std::size_t>(here) / 5 * 3;
  for (int i = 0; i < 2; ++i) {
    std::byte* const first = comm.allocate<std::byte>(piece);
    expect_error(errc::out_of_memory, [&] { (void)comm.allocate<std::byte>(piece); });
    if (i == 0) comm.deallocate(first);
  }
  comm = j.world.dup();  // the end of the other gave its memory back
  comm.deallocate(comm.allocate<std::byte>(piece));
}

// What was prepared when there was no such memory is what ranks do that start anew.
TEST_F(repeated, before_and_after_memory_that_all_ranks_reach) {
  constexpr std::size_t n = 1000;
  auto comm = j.world.dup();
  std::vector<int> in(n, rank), out(n), other(n);
  auto kept = comm.persistent().allreduce(in.data(), out.data(), n, op::sum);
  const auto rounds = [&] {
    for (int round = 0; round < 5; ++round) {
      std::fill(out.begin(), out.end(), -1);
      if (rank % 2) {
        comm.blocking().allreduce(in.data(), other.data(), n, op::sum);
        out = other;
      } else {
        kept.run();
      }
      ASSERT_EQ(out, std::vector<int>(n, size * (size - 1) / 2));
      std::vector<int> fresh(n);
      if (rank % 2 == 0) comm.blocking().allreduce(in.data(), fresh.data(), n, op::sum);
      if (rank % 2) kept.run();
    }
  };
  rounds();
  int* memory = comm.allocate<int>(n);
  rounds();
  comm.deallocate(memory);
  rounds();
}

}  // namespace
}  // namespace sucl::testing
