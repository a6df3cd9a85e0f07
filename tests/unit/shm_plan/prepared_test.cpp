// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Operations that are run over and over, at once or, where a peer is late, from where they stopped.
#include "backends/shm_plan/plans/plan_cache.hpp"
#include "unit/shm_plan/executor_draw.hpp"

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
  d.misalignment = seed % 5 == 0 ? d.misalignment : 0;
  return d;
}

TEST_P(prepared, agrees_with_the_definitions_each_time) {
  const int size = GetParam();
  for_ranks(size, [&](const backends& b, const sucl_comm_info& info) {
    int kinds = 0, with_hidden_counts = 0;
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
      const draw d = small_draw(seed + 7000u * static_cast<unsigned>(size), size);
      const bool in_place = (seed * 7 + static_cast<unsigned>(info.rank)) % 3 == 0;
      memory mine, model;
      const auto o = prepare(d, info.rank, size, in_place, mine);
      const bytes send = mine.send, recv = mine.recv;
      run(b.mock, prepare(d, info.rank, size, in_place, model));
      const auto p = core::prepare_run(b.plan, o);
      kinds += p != nullptr;
      with_hidden_counts += p && core::has_hidden_counts(o.kind);
      for (int time = 0; time < 6; ++time) {
        std::copy(send.begin(), send.end(), mine.send.begin());
        std::copy(recv.begin(), recv.end(), mine.recv.begin());
        if (info.rank == time % size && time % 2)
          std::this_thread::sleep_for(std::chrono::microseconds(100));
        const bool at_once = p && core::run_at_once(b.plan, *p);
        // Long blocks follow the block_descriptors in runs of their own.
        EXPECT_TRUE(at_once || size > 1 || !p || core::has_hidden_counts(o.kind));
        EXPECT_EQ(at_once ? SUCL_SUCCESS : run(b.plan, o).status, SUCL_SUCCESS);
        EXPECT_TRUE(same(d, mine.recv, model.recv)) << describe(d, info.rank, size, in_place);
        EXPECT_EQ(mine.send, model.send) << describe(d, info.rank, size, in_place);
      }
    }
    EXPECT_GT(kinds, 50);
    EXPECT_GT(with_hidden_counts, 10);
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

// What only some ranks know is sent anew each time, long blocks after it.
TEST_P(prepared, takes_blocks_of_their_own_lengths_as_they_are_now) {
  const int size = GetParam();
  for_ranks(size, [&](const backends& b, const sucl_comm_info& info) {
    const auto ranks = static_cast<std::uint64_t>(size), self = std::uint64_t(info.rank);
    for (const std::uint64_t most : {2u, 3000u}) {
      std::vector<std::uint64_t> counts, displs;
      for (std::uint64_t r = 0; r < ranks; ++r) {
        counts.push_back((r + self) % ranks % 3 * most / 2);
        displs.push_back(r * most);
      }
      std::vector<std::int64_t> in(ranks * most), out(in.size());
      sucl_operation o = operation(kind::alltoallv, type::int64, 0, op::sum);
      o.send = in.data();
      o.recv = out.data();
      o.send_counts = o.recv_counts = counts.data();
      o.send_displs = o.recv_displs = displs.data();
      const auto p = core::prepare_run(b.plan, o);
      ASSERT_TRUE(p);
      for (std::int64_t time = 0; time < 200; ++time) {
        for (std::uint64_t r = 0; r < ranks; ++r)
          std::fill_n(&in[displs[r]], most, time * 100 + std::int64_t(self * 10 + r));
        std::fill(out.begin(), out.end(), -1);
        if ((time + info.rank) % 3 == 0 || !core::run_at_once(b.plan, *p)) run(b.plan, o);
        for (std::uint64_t r = 0; r < ranks; ++r)
          for (std::uint64_t i = 0; i < most; ++i)
            ASSERT_EQ(out[displs[r] + i],
                      i < counts[r] ? time * 100 + std::int64_t(r * 10 + self) : -1);
      }
    }
  });
}

}  // namespace
