// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Operations that are run over and over, at once or, where a peer is late, from where they stopped.
#include "unit/exec_draw.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace sucl;
using namespace sucl::testing;

class prepared : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ranks, prepared, ::testing::Values(1, 2, 3, 4, 7));

// Bytes of one operation, or of several runs, and slices: all that may be prepared, or not.
draw small_draw(std::uint64_t seed, int size) {
  draw d = make_draw(seed, size, seed % 3 == 0 ? 20000 : seed % 3 == 1 ? 40 : 3);
  d.misplaced = seed % 5 == 0 ? d.misplaced : 0;
  return d;
}

TEST_P(prepared, agrees_with_the_definitions_each_time) {
  const int size = GetParam();
  for_ranks(size, [&](const backends& b, const sucl_comm_info& info) {
    int kinds = 0;
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
      const draw d = small_draw(seed + 7000u * static_cast<unsigned>(size), size);
      const bool in_place = (seed * 7 + static_cast<unsigned>(info.rank)) % 3 == 0;
      memory mine, model;
      const auto o = prepare(d, info.rank, size, in_place, mine);
      const bytes send = mine.send, recv = mine.recv;
      run(b.mock, prepare(d, info.rank, size, in_place, model));
      const auto p = core::prepare_run(b.plan, o);
      kinds += p != nullptr;
      for (int time = 0; time < 6; ++time) {
        std::copy(send.begin(), send.end(), mine.send.begin());
        std::copy(recv.begin(), recv.end(), mine.recv.begin());
        if (info.rank == time % size && time % 2)
          std::this_thread::sleep_for(std::chrono::microseconds(100));
        const bool at_once = p && core::run_at_once(b.plan, *p);
        EXPECT_TRUE(at_once || size > 1 || !p);
        EXPECT_EQ(at_once ? SUCL_SUCCESS : run(b.plan, o).status, SUCL_SUCCESS);
        EXPECT_TRUE(same(d, mine.recv, model.recv)) << describe(d, info.rank, size, in_place);
        EXPECT_EQ(mine.send, model.send) << describe(d, info.rank, size, in_place);
      }
    }
    EXPECT_GT(kinds, 50);
  });
}

// Ranks need not agree on whether they have prepared what they do, nor on what else they start.
TEST_P(prepared, goes_together_with_what_is_not) {
  const int size = GetParam();
  for_ranks(size, [&](const backends& b, const sucl_comm_info& info) {
    std::int64_t in = 0, out = 0;
    sucl_operation o = operation(kind::allreduce, type::int64, 1, op::sum);
    o.send = &in;
    o.recv = &out;
    const auto p = core::prepare_run(b.plan, o);
    ASSERT_TRUE(p);
    std::vector<std::int32_t> block(30000), sums(block.size());
    sucl_operation longer = operation(kind::allreduce, type::int32, block.size(), op::sum);
    longer.send = block.data();
    longer.recv = sums.data();
    for (int i = 0; i < 600; ++i) {
      in = i * (info.rank + 1);
      flight other;
      if (i % 50 == 0) other = post(b.plan, longer);
      if ((i + info.rank) % 3 == 0 || !core::run_at_once(b.plan, *p)) run(b.plan, o);
      ASSERT_EQ(out, i * size * (size + 1) / 2);
      EXPECT_EQ(wait(b.plan, other).status, SUCL_SUCCESS);
    }
  });
}

}  // namespace
