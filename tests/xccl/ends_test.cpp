// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// What becomes of a process whose communicators of the backend nccl end late or never, over a
// library that plays NCCL. A crash of a thread that ends one is a crash of the test's child.
#include "support/drive.hpp"
#include "support/jobs/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace {

using namespace sucl;
using namespace sucl::testing;

// Ends the process after its runtime, as main() does.
[[noreturn]] void leave(const char* milliseconds_of_an_end) {
  setenv("FAKE_NCCL_ENDS", milliseconds_of_an_end, 1);
  {
    core::registry registry;
    const auto& handle = registry.open({"nccl", SUCL_TEST_MODULES "/libsucl_backend_nccl.so", {}});
    run_ranks(2, [&](const sucl_comm_info& info) {
      int device = info.rank;
      sucl_comm_info own = info;
      own.native_device = &device;
      const core::backend_comm c = create_comm(handle, own);
      std::int32_t send = info.rank, recv = 0;
      sucl_operation sum = operation(kind::allreduce, type::int32, 1, op::sum);
      sum.send = &send;
      sum.recv = &recv;
      run(c, sum);
      destroy(c);
    });
  }
  std::exit(0);
}

class xccl_ends : public ::testing::Test {
 protected:
  xccl_ends() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(xccl_ends, that_are_late_are_waited_for_at_the_exit) {
  EXPECT_EXIT(leave("11000"), ::testing::ExitedWithCode(0), "could not be ended in time");
}

TEST_F(xccl_ends, that_never_come_end_the_process) {
  EXPECT_EXIT(leave("120000"), ::testing::ExitedWithCode(EXIT_FAILURE),
              "do not end, so the process");
}

}  // namespace
