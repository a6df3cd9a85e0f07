// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Tuning tables that a program gives to a communicator, and memory that it registers.
#include "ranks/fixture.hpp"

namespace sucl::testing {
namespace {

struct tuning : ::testing::Test {
  rank_fixture& j = fixture();
  const int rank = j.world.rank();
  const int size = j.world.size();

  static std::string table(const char* backend) {
    return std::string(
               "format = 2\n[machine]\nname = \"here\"\n[[choice]]\n"
               "collective = \"allreduce\"\nbackend = \"") +
           backend + "\"\n";
  }

  void expect_sum(communicator& comm) const {
    std::vector<int> x(3000, rank + 1);
    comm.allreduce(x.data(), x.size(), op::sum).wait();
    for (const int got : x) ASSERT_EQ(got, size * (size + 1) / 2);
  }

  void expect_refused(communicator& comm, const std::string& text, errc code) const {
    try {
      comm.use_tuning(text);
      ADD_FAILURE() << "taken";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
    }
  }
};

TEST_F(tuning, goes_by_the_text_that_it_is_given) {
  auto comm = j.world.dup();
  const std::string usual = comm.selected_backend(kind::allreduce, 12000);
  comm.use_tuning(table("mpi"));
  EXPECT_EQ(comm.selected_backend(kind::allreduce, 12000), "mpi");
  EXPECT_NE(comm.explain(kind::allreduce, 12000).find("given to use_tuning()"), std::string::npos);
  expect_sum(comm);
  comm.use_tuning("");
  EXPECT_EQ(comm.selected_backend(kind::allreduce, 12000), usual);
  expect_sum(comm);
}

TEST_F(tuning, is_refused_on_every_rank_if_it_is_wrong_on_one) {
  auto comm = j.world.dup();
  const std::string usual = comm.selected_backend(kind::allreduce, 12000);
  expect_refused(comm, table("unknown"), errc::configuration);
  const bool last = rank == size - 1;
  if (size > 1) {
    expect_refused(comm, last ? "format = 2\nhello" : table("mpi"), errc::configuration);
    expect_refused(comm, last ? table("plan") : table("mpi"), errc::mismatch);
  }
  EXPECT_EQ(comm.selected_backend(kind::allreduce, 12000), usual);
  expect_sum(comm);
}

// Where kernels of GPUs execute nothing there is nothing to gain, and nothing changes.
TEST_F(tuning, registers_memory_where_that_helps) {
  auto comm = j.world.dup();
  std::vector<int> x(3000, rank + 1);
  const bool reached = comm.register_memory(x.data(), x.size());
  EXPECT_FALSE(reached && j.queue.get_device().is_cpu());
  expect_sum(comm);
  comm.deregister_memory(x.data());
  expect_sum(comm);
}

}  // namespace
}  // namespace sucl::testing
