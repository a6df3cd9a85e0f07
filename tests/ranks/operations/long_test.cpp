// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Reductions of many pieces, of lengths that no number of ranks divides, again and again.
#include "ranks/fixture.hpp"

#include <cstdint>
#include <vector>

namespace sucl::testing::long_operations {
namespace {

constexpr std::size_t n = 1'900'003;

std::int32_t given(int rank, std::size_t i, int round) {
  return static_cast<std::int32_t>(i % 1013) * (rank + 1) + round;
}

std::int32_t summed(int ranks, std::size_t i, int round) {
  return static_cast<std::int32_t>(i % 1013) * sum_to(ranks) + ranks * round;
}

class long_reductions : public ::testing::TestWithParam<bool> {
 protected:
  communicator& m_comm = fixture().world;
  std::vector<std::int32_t> m_input = std::vector<std::int32_t>(n);
  std::vector<std::int32_t> m_output = std::vector<std::int32_t>(n, -1);
  bool in_place() const { return GetParam(); }

  void fill(int round) {
    auto& mine = in_place() ? m_output : m_input;
    for (std::size_t i = 0; i < n; ++i) mine[i] = given(m_comm.rank(), i, round);
  }
  // The first that differs, of `count` from `first` of the whole, which lie at `at`.
  void expect_sums(std::size_t at, std::size_t first, std::size_t count, int round) const {
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(m_output[at + i], summed(m_comm.size(), first + i, round)) << i << " of " << round;
  }
};

TEST_P(long_reductions, of_all_ranks_are_right) {
  auto now = m_comm.blocking();
  for (int round = 0; round < 3; ++round) {
    fill(round);
    if (in_place())
      now.allreduce(m_output.data(), n, op::sum);
    else
      now.allreduce(m_input.data(), m_output.data(), n, op::sum);
    expect_sums(0, 0, n, round);
    if (in_place()) continue;
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(m_input[i], given(m_comm.rank(), i, round));
  }
}

TEST_P(long_reductions, to_one_rank_are_right) {
  auto now = m_comm.blocking();
  for (int root = 0; root < m_comm.size(); ++root) {
    fill(root);
    if (in_place())
      now.reduce(m_output.data(), n, op::sum, root);
    else
      now.reduce(m_input.data(), m_output.data(), n, op::sum, root);
    if (m_comm.rank() == root) expect_sums(0, 0, n, root);
  }
}

TEST_P(long_reductions, in_parts_are_right) {
  auto now = m_comm.blocking();
  const std::size_t each = n / static_cast<std::size_t>(m_comm.size());
  for (int round = 0; round < 3; ++round) {
    fill(round);
    if (in_place())
      now.reduce_scatter_block(m_output.data(), each, op::sum);
    else
      now.reduce_scatter_block(m_input.data(), m_output.data(), each, op::sum);
    expect_sums(0, each * static_cast<std::size_t>(m_comm.rank()), each, round);
  }
}

INSTANTIATE_TEST_SUITE_P(forms, long_reductions, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "in_place" : "out_of_place"; });

}  // namespace
}  // namespace sucl::testing::long_operations
