// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Counts for each rank that are wrong on one rank alone.
#include "ranks/fixture.hpp"

#include <numeric>

namespace sucl::testing {
namespace {

struct counts_of_ranks : ::testing::Test {
  communicator comm = fixture().aside.dup();
  blocking_communicator now = comm.blocking();
  const int rank = comm.rank();
  const int size = comm.size();
  const counts each = counts(static_cast<std::size_t>(size), 3);
  counts displs = each;
  std::vector<int> mine = std::vector<int>(3 * each.size());
  std::vector<int> got = std::vector<int>(4 * each.size(), -1);

  void SetUp() override {
    std::exclusive_scan(each.begin(), each.end(), displs.begin(), std::size_t{0});
    std::iota(mine.begin(), mine.end(), 100 * rank);
  }
};

TEST_F(counts_of_ranks, are_the_same_on_both_sides_of_the_own_rank) {
  counts other = each;
  ++other[static_cast<std::size_t>(rank)];
  const auto refused = [&](const auto& call) {
    const std::string text = expect_error(errc::invalid_count, call);
    EXPECT_NE(text.find("sends itself"), text.npos) << text;
  };
  refused([&] { now.alltoallv(mine.data(), each, displs, got.data(), other, displs); });
  refused([&] { now.gatherv(mine.data(), 2, got.data(), each, displs, rank); });
  refused([&] { now.scatterv(mine.data(), each, displs, got.data(), 4, rank); });
  now.barrier();
}

// The peers wait for messages of this rank's as well.
TEST_F(counts_of_ranks, that_a_pair_differs_in_are_an_error_of_the_receiver) {
  if (size == 1) GTEST_SKIP() << "needs two ranks";
  const std::string backend = comm.selected_backend(kind::alltoallv, 12, type::int32, op::none);
  if (backend != "fabric") GTEST_SKIP() << backend << " executes it";
  for (const std::size_t n : {2, 4}) {
    counts other = each;
    if (rank == 1) other[0] = n;
    const counts starts(each.size(), 0);
    std::iota(displs.begin(), displs.end(), std::size_t{0});
    for (std::size_t& d : displs) d *= 4;
    const auto call = [&] {
      comm.alltoallv(mine.data(), each, starts, got.data(), other, displs).wait();
      comm.check();
    };
    if (rank == 1)
      expect_error(errc::invalid_count, call);
    else
      EXPECT_NO_THROW(call());
    EXPECT_EQ(got[static_cast<std::size_t>(4 * (size - 1))], 100 * (size - 1));
    int sum = 1;
    now.allreduce(&sum, 1, op::sum);
    EXPECT_EQ(sum, size);
  }
}

}  // namespace
}  // namespace sucl::testing
