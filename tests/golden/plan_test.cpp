// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Approved plans: what is built today must be what was approved, byte for byte, or the change must
// be meant. With SUCL_APPROVE=1 in the environment the files are written anew.
#include "plan/algorithms/algorithms.hpp"
#include "plan/serialization/text.hpp"
#include "plan/verify/verify.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace sucl::plan {
namespace {

struct approved {
  const char* file;
  kind what;
  int ranks;
  std::uint64_t count;
  const char* recipe;
};

class plan_golden : public testing::TestWithParam<approved> {};

void compare(const std::string& path, const std::string& now) {
  if (const char* approve = std::getenv("SUCL_APPROVE"); approve && approve[0] == '1')
    std::ofstream(path) << now;
  std::ifstream file(path);
  std::stringstream before;
  before << file.rdbuf();
  EXPECT_EQ(now, before.str()) << "differs from " << path
                               << "; if that is meant, run again with SUCL_APPROVE=1";
}

TEST_P(plan_golden, is_as_approved) {
  const approved& a = GetParam();
  problem p;
  p.kind = a.what;
  p.ranks = a.ranks;
  p.element_bytes = 4;
  p.counts = {a.count};
  const schedule s = build(p, recipe_from_text(a.recipe));
  ASSERT_TRUE(verify(s)) << verify(s).message;
  const std::string path = std::string(SUCL_TEST_GOLDEN_DIR) + "/" + a.file;
  compare(path + ".plan", to_text(s));
  compare(path + ".json", to_json(s));
}

INSTANTIATE_TEST_SUITE_P(
    all, plan_golden,
    testing::Values(approved{"ring", kind::allreduce, 3, 7, "ring"},
                    approved{"exchange", kind::allreduce, 6, 12, "exchange(radices=2,3;split=1)"},
                    approved{"two_shot", kind::allreduce, 2, 6, "two_shot(pipeline=2)"},
                    approved{"multi_leader", kind::allreduce, 4, 8,
                             "hierarchical(hierarchy=2,2;inner=peer;outer=doubling;via=mpi,ipc)"},
                    approved{"broadcast", kind::broadcast, 6, 6,
                             "composed(hierarchy=2,3;pipeline=2;stripe=3;via=mpi,ipc)"},
                    approved{"alltoall", kind::alltoall, 3, 1, "bruck"}),
    [](const auto& i) { return std::string(i.param.file); });

}  // namespace
}  // namespace sucl::plan
