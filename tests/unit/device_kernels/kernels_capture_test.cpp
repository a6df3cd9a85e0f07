// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Kernels that are captured once and run many times, among others that are launched: against the
// backend mock, with kernels whose work items are threads.
#include "unit/device_kernels/thread_device.hpp"
#include "unit/shm_plan/executor_draw.hpp"

#include <gtest/gtest.h>

#include <list>

namespace {

using namespace sucl;
using namespace sucl::testing;

/// One operation on memory of its own, with what it shall give.
struct captured_call {
  draw what;
  bool in_place;
  memory mine, model;
  sucl_operation operation, same_operation;
  memory before;
};

captured_call& add_call(std::list<captured_call>& all, std::uint64_t seed, const kernel_rank& j) {
  captured_call& c = all.emplace_back();
  c.what = make_draw(seed, j.info.size, 3000);
  c.in_place = (seed * 7 + static_cast<unsigned>(j.info.rank)) % 3 == 0;
  c.operation = prepare(c.what, j.info.rank, j.info.size, c.in_place, c.mine);
  c.same_operation = prepare(c.what, j.info.rank, j.info.size, c.in_place, c.model);
  c.before = c.mine;
  return c;
}

// Input as it was at first: the memory stays where it is.
void restore(captured_call& c) {
  std::copy(c.before.send.begin(), c.before.send.end(), c.mine.send.begin());
  std::copy(c.before.recv.begin(), c.before.recv.end(), c.mine.recv.begin());
}

void expect_right(const captured_call& c, const kernel_rank& j, int replay) {
  EXPECT_TRUE(same(c.what, c.mine.recv, c.model.recv))
      << describe(c.what, j.info.rank, j.info.size, c.in_place) << ", replay " << replay;
}

/// Operations of one rank that are captured together.
class captured_step {
 public:
  captured_step(const kernel_rank& j, std::uint64_t seed, int operations) : m_rank(j) {
    for (int i = 0; i < operations; ++i) {
      captured_call& c = add_call(m_calls, seed + static_cast<unsigned>(i), j);
      const flight reference = run(j.mock, c.same_operation);
      EXPECT_EQ(reference.status, SUCL_SUCCESS) << reference.error.message;
    }
    // What the operations need beside, as memory, is there once they have run.
    for (captured_call& c : m_calls) EXPECT_EQ(run(j.kernels, c.operation).status, SUCL_SUCCESS);
    EXPECT_TRUE(j.comm().begin_capture());
    EXPECT_FALSE(j.comm().begin_capture());
    j.device.captures = &m_graph;
    for (captured_call& c : m_calls) {
      m_operations.all.emplace_back().record = c.operation;
      EXPECT_EQ(run(j.kernels, c.operation).status, SUCL_SUCCESS);
    }
    j.device.captures = nullptr;
    m_operations.of_kernels = j.comm().end_capture();
  }

  void replay(int number) {
    for (captured_call& c : m_calls) restore(c);
    EXPECT_TRUE(m_rank.comm().may_replay(m_operations.of_kernels));
    const core::graph_base base = m_rank.comm().replay(m_operations);
    m_rank.device.drain();
    m_rank.device.write(base.memory, base.values, sizeof base.values);
    m_rank.device.replay(m_graph);
    m_rank.device.drain();
    for (const captured_call& c : m_calls) expect_right(c, m_rank, number);
  }

 private:
  const kernel_rank& m_rank;
  std::list<captured_call> m_calls;
  thread_device::graph m_graph;
  core::captured_operations m_operations;
};

void call(const kernel_rank& j, std::uint64_t seed) {
  std::list<captured_call> one;
  captured_call& c = add_call(one, seed, j);
  EXPECT_EQ(run(j.mock, c.same_operation).status, SUCL_SUCCESS);
  EXPECT_EQ(run(j.kernels, c.operation).status, SUCL_SUCCESS);
  expect_right(c, j, 0);
}

class kernels_captured_on : public ::testing::TestWithParam<std::tuple<int, peer_access>> {};
INSTANTIATE_TEST_SUITE_P(ranks, kernels_captured_on,
                         ::testing::Values(std::tuple{2, peer_access::all},
                                           std::tuple{2, peer_access::none},
                                           std::tuple{3, peer_access::all}));

// Of odd and of even numbers of operations, so that halves of the buffers are swapped, and behind
// operations that do and do not wait for all ranks.
TEST_P(kernels_captured_on, run_again_and_again_among_calls) {
  const auto [size, how] = GetParam();
  for_devices(size, how, [&](const kernel_rank& j) {
    std::list<captured_step> steps;
    for (int operations = 1; operations <= 4; ++operations)
      steps.emplace_back(j, 100u * static_cast<unsigned>(operations), operations);
    std::uint64_t seed = 7000;
    for (int number = 0; number < 6; ++number) {
      for (captured_step& s : steps) {
        s.replay(number);
        if (number % 3 == 0) call(j, ++seed);
      }
    }
  });
}

// Flags of LL lines have 32 bits, of which none may be 0: a graph that would have such a number in
// its middle is not launched, and its operations are called.
TEST(kernels_captured, not_across_the_end_of_short_flags) {
  core::kernel_settings settings = small_buffers();
  settings.operations = (std::uint64_t{1} << 32) - 8;
  for_devices(
      2, peer_access::all,
      [&](const kernel_rank& j) {
        const captured_step step(j, 100, 3);  // and calls of three
        core::captured_kernels three;
        three.count = 3;
        EXPECT_TRUE(j.comm().may_replay(three));
        call(j, 1);
        call(j, 2);
        EXPECT_FALSE(j.comm().may_replay(three));
        for (std::uint64_t seed = 3; seed < 8; ++seed) call(j, seed);
        EXPECT_TRUE(j.comm().may_replay(three));
      },
      settings);
}

}  // namespace
