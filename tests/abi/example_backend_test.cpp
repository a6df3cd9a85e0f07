// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The example backend: its module is the argument of the program.
#include "support/drive.hpp"
#include "support/jobs/thread_ranks.hpp"

#include <gtest/gtest.h>

namespace {

using namespace sucl;
using namespace sucl::testing;

std::string module;

class relay_ranks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ranks, relay_ranks, ::testing::Values(1, 2, 5));

TEST_P(relay_ranks, broadcasts_in_issue_order) {
  core::registry registry;
  const auto& handle = registry.open({"relay", module, {}});
  run_ranks(GetParam(), [&](const sucl_comm_info& info) {
    const core::backend_comm c = create_comm(handle, info);
    std::vector<std::vector<int>> data;
    std::vector<flight> flights;
    for (int i = 0; i < 20; ++i) {
      auto& v = data.emplace_back(static_cast<std::size_t>(i), 100 * info.rank + i);
      auto o = operation(kind::broadcast, type::int32, v.size());
      o.root = i % info.size;
      const bool root = info.rank == o.root;
      o.flags = root && i % 2 == 0 ? SUCL_FLAG_IN_PLACE : 0;
      o.send = root && i % 2 == 1 ? v.data() : nullptr;
      o.recv = root && i % 2 == 1 ? nullptr : v.data();
      flights.push_back(post(c, o));
      flights.push_back(post(c, operation(kind::barrier, type::bytes, 0)));
    }
    for (auto f = flights.rbegin(); f != flights.rend(); ++f)
      EXPECT_EQ(wait(c, *f).status, SUCL_SUCCESS);
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(data[static_cast<std::size_t>(i)],
                std::vector<int>(static_cast<std::size_t>(i), 100 * (i % info.size) + i));
    EXPECT_EQ(run(c, operation(kind::scan, type::int32, 0, op::sum)).status,
              SUCL_ERROR_UNSUPPORTED);
    destroy(c);
  });
}

TEST(relay, reads_its_settings) {
  const auto problem = [](const char* key, const char* value) {
    core::registry registry;
    EXPECT_EQ(registry.try_open({"relay", module, {{key, value}}}), nullptr);
    return registry.reports().at(0).problem.value();
  };
  EXPECT_EQ(problem("max_byte", "1").hint, "Its only setting is max_bytes.");
  for (const char* wrong : {"1k", "", "0", "-1", "1073741825", "18446744073709551616"})
    EXPECT_EQ(problem("max_bytes", wrong).code, errc::configuration) << wrong;
  core::registry registry;
  const auto& handle = registry.open({"relay", module, {{"max_bytes", "64"}}});
  sucl_query q{};
  q.kind = SUCL_KIND_BROADCAST;
  q.element_size = 8;
  sucl_capability a{};
  EXPECT_EQ(handle.table->query(handle.state, &q, &a), SUCL_SUCCESS);
  EXPECT_EQ(a.supported, 1);
  EXPECT_EQ(a.max_count, 8u);
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 2) return 2;
  module = argv[1];
  return RUN_ALL_TESTS();
}
