// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Plans that a program composes and compiles. tests/ranks/CMakeLists.txt runs this on several nodes
// too.
#include "ranks/fixture.hpp"

#include <chrono>
#include <cstdlib>
#include <numeric>
#include <thread>

namespace sucl::testing {
namespace {

struct compiled : ::testing::Test {
  rank_fixture& j = fixture();
  const int rank = j.world.rank();
  const int size = j.world.size();

  // Reduce to the owner of each block, then spread: an allreduce of `size` blocks of n.
  composition sum_of_blocks(std::size_t n, op o = op::sum) const {
    composition c{size};
    for (int r = 0; r < size; ++r) {
      const auto at = static_cast<std::size_t>(r) * n;
      c.reduction(c.send(at, n), c.recv(at, n), all, r, o);
    }
    c.fence();
    for (int r = 0; r < size; ++r) {
      const auto at = static_cast<std::size_t>(r) * n;
      c.multicast(c.recv(at, n), c.recv(at, n), r, others(r));
    }
    return c;
  }
  std::vector<int> others(int but) const {
    std::vector<int> list;
    for (int r = 0; r < size; ++r)
      if (r != but) list.push_back(r);
    return list;
  }
  bool alone() const { return size == 1; }
  static bool wants_kernels() {
    const char* rules = std::getenv("SUCL_RULES");
    return rules && std::string(rules).find("kernels") != std::string::npos;
  }

  void expect_sums(compiled_plan& plan, std::size_t n, int rounds) {
    const std::size_t total = n * static_cast<std::size_t>(size);
    std::vector<int> in(total), out(total);
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < total; ++i) in[i] = rank + round + static_cast<int>(i % 7);
      std::fill(out.begin(), out.end(), -1);
      if (round % 2)
        plan.run<int>(in.data(), out.data());
      else
        plan.start<int>(in.data(), out.data()).wait();
      for (std::size_t i = 0; i < total; ++i)
        ASSERT_EQ(out[i], size * (size - 1) / 2 + size * (round + static_cast<int>(i % 7))) << i;
    }
  }

  void expect_refused(errc code, const char* words, const composition& c,
                      const compile_options& o = {}) {
    try {
      (void)j.world.compile<float>(c, o);
      ADD_FAILURE() << "no error with: " << words;
    } catch (const error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
  }
};

TEST_F(compiled, computes_what_the_composition_says) {
  if (alone()) GTEST_SKIP() << "needs ranks";
  for (const std::size_t n : {1, 5, 3000}) {
    for (const compile_options& o :
         {compile_options{}, compile_options{{(size + 1) / 2, 2}, {}, 1, 1, 1},
          compile_options{{(size + 1) / 2, 2}, {}, 2, 1, 3},
          compile_options{{(size + 1) / 2, 2}, {}, 1, (size + 1) / 2, 2}}) {
      auto plan = j.world.compile<int>(sum_of_blocks(n), o);
      EXPECT_EQ(plan.send_size(), n * static_cast<std::size_t>(size));
      EXPECT_NE(plan.explain().find("verified"), std::string::npos) << plan.explain();
      EXPECT_EQ(plan.explain().find("executed by kernels") != std::string::npos, wants_kernels())
          << plan.explain();
      expect_sums(plan, n, 4);
    }
  }
}

// Hierarchy and transports along the nodes that the configuration declares.
TEST_F(compiled, uses_a_transport_for_each_level) {
  const char* declared = std::getenv("SUCL_NODE_SIZE");
  if (!declared || std::string(declared) != "2" || size % 2) GTEST_SKIP() << "needs nodes of two";
  auto plan = j.world.compile<int>(sum_of_blocks(400), {{size / 2, 2}, {"mpi", "ipc"}, 2, 1, 2});
  expect_sums(plan, 400, 20);
  expect_refused(errc::invalid_argument, "via ipc, and are on different nodes", sum_of_blocks(1),
                 {{size / 2, 2}, {"ipc", "ipc"}, 1, 1, 1});
}

TEST_F(compiled, starts_follow_each_other_without_a_wait) {
  constexpr std::size_t n = 64;
  composition c{size};
  for (int r = 0; r < size; ++r)
    c.multicast(c.send(0, n), c.recv(static_cast<std::size_t>(r) * n, n), r, all);
  auto plan = j.world.compile<int>(c);
  constexpr int depth = 8, rounds = 60;
  const auto blocks = static_cast<std::size_t>(size);
  std::vector<std::vector<int>> in(depth, std::vector<int>(n)), out(depth);
  for (auto& memory : out) memory.resize(n * blocks);
  std::vector<sycl::event> done(depth);
  for (int round = 0; round < rounds + depth; ++round) {
    const auto k = static_cast<std::size_t>(round % depth);
    done[k].wait();
    for (int r = 0; round >= depth && r < size; ++r) {
      ASSERT_EQ(out[k][static_cast<std::size_t>(r) * n], r * 1000 + round - depth);
      ASSERT_EQ(out[k][static_cast<std::size_t>(r) * n + n - 1], r * 1000 + round - depth);
    }
    if (round >= rounds) continue;
    std::fill(in[k].begin(), in[k].end(), rank * 1000 + round);
    if ((round + rank) % 11 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    done[k] = plan.start<int>(in[k].data(), out[k].data());
  }
}

TEST_F(compiled, has_scratch_and_takes_buffers) {
  // To the last rank's scratch, from there on to all.
  constexpr std::size_t n = 33;
  const int last = size - 1;
  composition c{size};
  c.reduction(c.send(0, n), c.scratch(0, n), all, last, op::max);
  c.fence();
  c.multicast(c.scratch(0, n), c.recv(2, n), last, all);
  auto plan = j.world.compile<float>(c);
  EXPECT_EQ(plan.recv_size(), n + 2);
  sycl::buffer<float> x{sycl::range{n}}, y{sycl::range{n + 2}};
  for (int round = 0; round < 3; ++round) {
    {
      sycl::host_accessor in{x}, out{y};
      for (std::size_t i = 0; i < n; ++i) in[i] = static_cast<float>(rank + round);
      out[0] = out[1] = -3;
    }
    plan.start(x, y);
    sycl::host_accessor out{y};
    ASSERT_EQ(out[0], -3);
    ASSERT_EQ(out[2], static_cast<float>(last + round));
    ASSERT_EQ(out[n + 1], static_cast<float>(last + round));
  }
}

TEST_F(compiled, refuses_what_makes_no_sense_on_every_rank) {
  composition c{size};
  c.multicast(c.send(0, 4), c.recv(0, 4), size, all);
  expect_refused(errc::invalid_rank, "names a rank that does not exist", c);

  composition counts{size};
  counts.multicast(counts.send(0, 4), counts.recv(0, 5), 0, all);
  expect_refused(errc::invalid_count, "multicast (primitive 0) goes from 4 elements to 5", counts);

  composition race{size};
  race.multicast(race.send(0, 4), race.recv(0, 4), 0, all);
  race.multicast(race.send(0, 4), race.recv(3, 4), 0, all);
  expect_refused(errc::invalid_argument, "a race in step 0: primitive 0 (multicast", race);

  composition unset{size};
  unset.multicast(unset.scratch(0, 4), unset.recv(0, 4), 0, all);
  expect_refused(errc::invalid_argument, "where nothing was written", unset);

  composition ops{size};
  ops.reduction(ops.send(0, 4), ops.recv(0, 4), all, 0, op::sum);
  ops.reduction(ops.send(0, 4), ops.recv(4, 4), all, 0, op::max);
  expect_refused(errc::invalid_argument, "(primitive 1) has op max, others have sum", ops);

  composition bits{size};
  bits.reduction(bits.send(0, 4), bits.recv(0, 4), all, 0, op::bit_and);
  expect_refused(errc::invalid_type, "not defined for fp32", bits);

  expect_refused(errc::invalid_rank, "a composition for", composition{size + 1});
  composition good{size};
  good.multicast(good.send(0, 4), good.recv(0, 4), 0, all);
  if (size > 1) expect_refused(errc::invalid_argument, "hierarchy", good, {{1}, {}, 1, 1, 1});
  expect_refused(errc::invalid_argument, "transports for", good, {{size}, {"any", "any"}, 1, 1, 1});
}

TEST_F(compiled, is_refused_on_all_if_one_rank_differs) {
  if (alone()) GTEST_SKIP() << "needs ranks";
  composition c{size};
  c.multicast(c.send(0, 4), c.recv(0, 4), rank == 1 ? 99 : 0, all);
  expect_refused(errc::invalid_rank,
                 rank == 1 ? "does not exist" : "rank 1 could not compile the plan", c);
  composition other{size};
  other.multicast(other.send(0, 4), other.recv(0, 4), rank == 1 ? 1 : 0, all);
  expect_refused(errc::mismatch, "compile different plans", other);
}

TEST_F(compiled, checks_what_it_is_started_on) {
  composition c{size};
  c.multicast(c.send(0, 4), c.recv(0, 4), 0, all);
  auto plan = j.world.compile<float>(c);
  std::vector<double> wrong(4);
  EXPECT_THROW(plan.run(wrong.data(), wrong.data()), error);
  std::vector<float> x(6, static_cast<float>(rank));
  EXPECT_THROW(plan.run<float>(x.data(), nullptr), error);
  // Only the root reads what it sends.
  if (rank == 0) {
    EXPECT_THROW(plan.run<float>(x.data(), x.data() + 2), error);
  }
  std::vector<float> y(4, -1);
  plan.run<float>(rank == 0 ? x.data() : nullptr, y.data());
  EXPECT_EQ(y[3], 0);
}

TEST_F(compiled, an_empty_handle_refuses) {
  compiled_plan none;
  EXPECT_FALSE(none);
  float x = 0;
  EXPECT_THROW(none.run(&x, &x), error);
}

}  // namespace
}  // namespace sucl::testing
