// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "fixture.hpp"

#include <cstdio>
#include <cstring>
#include <string>

namespace sucl::testing {
namespace {

rank_fixture* g_fixture = nullptr;

// For the ranks that do not print: what failed, and where.
class failures_only : public ::testing::EmptyTestEventListener {
 public:
  explicit failures_only(int rank) : m_rank(rank) {}
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", m_rank,
                 result.file_name() ? result.file_name() : "?", result.line_number(),
                 result.message());
  }

 private:
  int m_rank;
};

}  // namespace

rank_fixture& fixture() { return *g_fixture; }

rank_fixture make_fixture(const sycl::device& device, runtime& rt) {
  const sycl::context context(device);
  rank_fixture j;
  j.queue = sycl::queue(context, device);
  j.in_order = sycl::queue(context, device, sycl::property::queue::in_order{});
  j.world = rt.world(j.queue);
  j.in_order_world = rt.world(j.in_order);
  j.aside = rt.world();
  return j;
}

std::vector<std::string> texts_of_ranks(communicator aside, const std::string& mine) {
  constexpr std::size_t room = 1024;
  const auto p = static_cast<std::size_t>(aside.size());
  std::vector<char> own(room, '\0'), all(p * room);
  std::strncpy(own.data(), mine.c_str(), room - 1);
  aside.blocking().allgather(own.data(), all.data(), room);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < p; ++r) texts.emplace_back(&all[r * room]);
  return texts;
}

int run_tests(int argc, char** argv, runtime& rt, rank_fixture& j) {
  ::testing::InitGoogleTest(&argc, argv);
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (rt.rank() != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new failures_only(rt.rank()));
  }
  g_fixture = &j;
  const int result = RUN_ALL_TESTS();
  g_fixture = nullptr;
  return result;
}

}  // namespace sucl::testing
