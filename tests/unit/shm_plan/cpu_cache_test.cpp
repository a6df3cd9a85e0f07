// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_common/cpu_cache.hpp"

#include "backends/shm_plan/plans/plan_cache.hpp"
#include "support/sanitized.hpp"
#include "unit/shm_plan/executor_draw.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace sucl;
using namespace sucl::testing;
namespace fs = std::filesystem;

// A system's description of its caches.
class described_caches : public ::testing::Test {
 protected:
  void add(const char* level, const char* size, const char* processors) {
    const fs::path at = m_folder / ("index" + std::to_string(m_next++));
    fs::create_directories(at);
    std::ofstream(at / "level") << level << '\n';
    std::ofstream(at / "size") << size << '\n';
    std::ofstream(at / "shared_cpu_list") << processors << '\n';
  }
  core::shared_cache last() const { return core::last_cache_of(m_folder.string()); }
  void TearDown() override { fs::remove_all(m_folder); }

 private:
  fs::path m_folder = fs::path(::testing::TempDir()) / ("caches" + std::to_string(getpid()));
  int m_next = 0;
};

TEST_F(described_caches, are_read_as_the_system_writes_them) {
  EXPECT_EQ(last().bytes, 0u) << "nothing is described";
  add("1", "32K", "0,64");
  add("1", "32K", "0,64");
  add("3", "32768K", "0-7,64-71");
  add("2", "1M", "0,64");
  EXPECT_EQ(last().bytes, 32u << 20);
  EXPECT_EQ(last().processors, 16);
}

TEST_F(described_caches, may_be_of_one_processor) {
  add("2", "2048K", "5");
  EXPECT_EQ(last().bytes, 2u << 20);
  EXPECT_EQ(last().processors, 1);
  EXPECT_EQ(last().share(4), 2u << 20) << "each rank has one";
}

TEST(caches, are_shared_by_ranks_as_near_as_can_be) {
  const core::shared_cache cache{64, 8};
  EXPECT_EQ(cache.share(1), 64u);
  EXPECT_EQ(cache.share(2), 32u);
  EXPECT_EQ(cache.share(100), 8u);
  EXPECT_GT(core::last_cache().bytes, 0u);
}

TEST(caches, are_compared_with_what_ranks_touch) {
  const auto touched = [](kind k, std::vector<std::uint64_t> counts = {}) {
    auto o = operation(k, type::fp32, 100, reduces(k) ? op::sum : op::none);
    if (!counts.empty()) o.recv_counts = counts.data();
    return core::bytes_touched(o, 4);
  };
  EXPECT_EQ(touched(kind::broadcast), 400u);
  EXPECT_EQ(touched(kind::reduce), 500u);
  EXPECT_EQ(touched(kind::allreduce), 800u);
  EXPECT_EQ(touched(kind::scatter), 800u);
  EXPECT_EQ(touched(kind::gather), 800u);
  EXPECT_EQ(touched(kind::allgather), 2000u);
  EXPECT_EQ(touched(kind::reduce_scatter_block), 2000u);
  EXPECT_EQ(touched(kind::alltoall), 3200u);
  EXPECT_EQ(touched(kind::allgatherv, {400, 0, 0, 0}), 2000u);
  EXPECT_EQ(touched(kind::reduce_scatter, {10, 20, 30, 40}), 500u);
}

// Operations that fill the caches leave what they write in memory; it is as right there. Memory
// that begins anywhere has ends that are no whole lines.
TEST(caches, are_passed_by_long_results) {
  const std::uint64_t share = core::last_cache().share(2);
  const auto n = static_cast<std::size_t>(share / sizeof(std::int32_t) + 3);
  for_ranks(2, [&](const backends& b, const sucl_comm_info& info) {
    std::vector<std::int32_t> in(2 * n + 1), out(2 * n + 1);
    std::iota(in.begin(), in.end(), info.rank);
    for (const kind k : {kind::alltoall, kind::allgather, kind::allreduce, kind::broadcast}) {
      const auto o = [&] {
        auto made = operation(k, type::int32, n, reduces(k) ? op::sum : op::none);
        made.send = in.data() + 1;
        made.recv = out.data() + 1;
        made.root = 1;
        return made;
      }();
      const core::placement where{info.rank, 2, {0, 0}, {}};
      core::plan_cache plans(where, std::uint64_t{256} << 10, core::default_tuning());
      const core::plan_instance& how = plans.of(o, core::access_mode::staged);
      EXPECT_TRUE(how.copies_nontemporal) << name(k);
      EXPECT_EQ(how.folds_nontemporal, k != kind::broadcast) << name(k);
      std::fill(out.begin(), out.end(), -1);
      ASSERT_EQ(run(b.plan, o).status, SUCL_SUCCESS);
      EXPECT_EQ(out[0], -1) << "before the result";
      const auto at = [&](std::size_t i, int rank) {
        return static_cast<std::int32_t>(i) + 1 + rank;
      };
      long wrong = 0;
      for (std::size_t i = 0; i < n; i += sucl_test::sanitized ? 61 : 1) {
        const auto self = static_cast<std::size_t>(info.rank);
        std::int32_t first = at(i, 0), second = at(i, 1);
        if (k == kind::alltoall) first = at(self * n + i, 0), second = at(self * n + i, 1);
        if (k == kind::allreduce) first += second;
        if (k == kind::broadcast) first = info.rank == o.root ? -1 : second;
        wrong += out[1 + i] != first;
        const bool blocks = k == kind::alltoall || k == kind::allgather;
        wrong += out[1 + n + i] != (blocks ? second : -1);
      }
      EXPECT_EQ(wrong, 0) << name(k) << " on rank " << info.rank;
    }
  });
}

}  // namespace
