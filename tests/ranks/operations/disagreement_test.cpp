// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Ranks that mean different operations, which SuCL executes itself: without any setting all of them
// get an error that says who called what, and other communicators go on.
#include "ranks/job.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

namespace sucl::testing {
namespace {

using call = std::function<void(communicator&)>;

int* x_of() {
  static std::vector<int> memory(10000, 1);
  return memory.data();
}

// The text of each rank.
std::vector<std::string> everybodys(communicator aside, const std::string& mine) {
  constexpr std::size_t room = 1024;
  const auto p = static_cast<std::size_t>(aside.size());
  std::vector<char> own(room, '\0'), all(p * room);
  std::strncpy(own.data(), mine.c_str(), room - 1);
  aside.blocking().allgather(own.data(), all.data(), room);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < p; ++r) texts.emplace_back(&all[r * room]);
  return texts;
}

// What a rank is told in these calls, or, at the latest, in a right one after them.
std::string told(communicator& comm, const call& mine) {
  const auto message_of = [&](const call& c) -> std::string {
    try {
      c(comm);
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::mismatch) << e.what();
      return e.message();
    }
    return {};
  };
  const call right = [](communicator& c) {
    int sum = 1;
    c.blocking().allreduce(&sum, 1, op::sum);
    ADD_FAILURE() << "an operation after a mismatch has given " << sum;
  };
  std::string text = message_of(mine);
  if (text.empty()) text = message_of(right);
  EXPECT_EQ(message_of(right), text);
  EXPECT_THROW(comm.check(), error);
  return text;
}

// Plans execute operations of each size here.
class disagreement : public ::testing::Test {
 protected:
  void SetUp() override {
    if (m_job.aside.size() == 1) GTEST_SKIP() << "needs two ranks";
    if (m_job.aside.selected_backend(kind::allreduce, 4) != "plan")
      GTEST_SKIP() << "MPI executes it";
  }
  using maker = std::function<communicator()>;
  void differ(const char* name, const call& usual, const call& other, const std::string& says,
              const std::string& says_other, const maker& make = {}) {
    const int size = m_job.aside.size();
    for (const int odd : {0, size - 1}) {
      SCOPED_TRACE(std::string(name) + ", rank " + std::to_string(odd) + " differs");
      auto comm = make ? make() : m_job.aside.dup();
      const auto text = told(comm, comm.rank() == odd ? other : usual);
      for (const auto& theirs : everybodys(m_job.aside, text)) EXPECT_EQ(theirs, text);
      EXPECT_NE(text.find(says), std::string::npos) << text;
      EXPECT_NE(text.find("rank " + std::to_string(odd) + " called " + says_other),
                std::string::npos)
          << text;
    }
  }
  job& m_job = the_job();
  std::vector<int> x = std::vector<int>(300000, 1), y = x;
};

TEST_F(disagreement, of_blocking_calls) {
  for (const std::size_t n : {std::size_t{2}, std::size_t{3000}, std::size_t{100000}})
    differ(
        "count", [&](auto& c) { c.blocking().allreduce(x.data(), y.data(), n, op::sum); },
        [&](auto& c) { c.blocking().allreduce(x.data(), y.data(), 3 * n, op::sum); },
        "allreduce of " + std::to_string(n) + " int32",
        "allreduce of " + std::to_string(3 * n) + " int32 with op sum");
  differ(
      "root", [&](auto& c) { c.blocking().broadcast(x.data(), 8, 0); },
      [&](auto& c) { c.blocking().broadcast(x.data(), 8, 1); }, "broadcast of 8 int32 from rank 0",
      "broadcast of 8 int32 from rank 1");
}

TEST_F(disagreement, of_repeated_calls) {
  const auto repeats = [&](std::size_t last) {
    return [this, last](communicator& c) {
      for (int i = 0; i < 50; ++i) c.blocking().allreduce(x.data(), y.data(), 10, op::max);
      c.blocking().allreduce(x.data(), y.data(), last, op::max);
    };
  };
  differ("a call after many", repeats(10), repeats(11), "allreduce of 10 int32 with op max",
         "allreduce of 11 int32");
  const auto persistent = [&](std::size_t n) {
    return [this, n](communicator& c) {
      auto kept = c.persistent().allreduce(x.data(), y.data(), n, op::sum);
      for (int i = 0; i < 5; ++i) kept.run();
    };
  };
  differ("persistent", persistent(100), persistent(200), "allreduce of 100", "allreduce of 200");
}

// The queue's handler is told too.
TEST_F(disagreement, of_calls_by_event) {
  static std::atomic<int> handled{0};
  sycl::queue queue(sycl::cpu_selector_v, [](const sycl::exception_list& list) {
    handled += static_cast<int>(list.size());
  });
  const auto events = [&](std::size_t n) {
    return [this, n](communicator& c) {
      c.allreduce(x.data(), 5, op::sum);
      c.broadcast(y.data(), n, 0);
      c.wait();
    };
  };
  differ("count", events(70), events(7000), "broadcast of 70 int32", "broadcast of 7000 int32",
         [&] { return m_job.world_with(queue); });
  queue.wait_and_throw();
}

TEST_F(disagreement, of_memory_that_all_ranks_reach) {
  const auto on_shared = [](std::size_t n) {
    return [n](communicator& c) {
      auto* mine = c.allocate<int>(40000);
      std::fill_n(mine, 40000, 7);
      c.blocking().barrier();
      try {
        c.blocking().allgather(x_of(), mine, n);
      } catch (...) {
        EXPECT_EQ(mine[39999], 7);
        throw;
      }
    };
  };
  differ("allgather", on_shared(1000), on_shared(3000), "allgather of 1000", "allgather of 3000");
}

// The form need not match, and threads may take turns.
TEST_F(disagreement, is_none_between_forms) {
  auto comm = m_job.aside.dup();
  for (int round = 0; round < 20; ++round) {
    int sum = comm.rank() + 1;
    const auto once = [&] {
      if ((comm.rank() + round) % 2)
        comm.blocking().allreduce(&sum, 1, op::sum);
      else
        comm.allreduce(&sum, 1, op::sum).wait();
    };
    if (round % 3)
      once();
    else
      std::thread(once).join();
    ASSERT_EQ(sum, sum_to(comm.size()));
  }
  EXPECT_NO_THROW(comm.check());
}

}  // namespace
}  // namespace sucl::testing
