// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The executor where ranks copy from each other's memory, which here are those of threads.
#include "backends/shm_plan/execution/copy_mode_tuner.hpp"
#include "core/exchange/core_services.hpp"
#include "unit/shm_plan/executor_draw.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

namespace {

using namespace sucl;
using namespace sucl::testing;

thread_local int reads_left = -1;  // until one fails; negative: none does

sucl_status fail_sometimes(sucl_backend_comm*, std::int32_t, void* to, std::uint64_t from,
                           std::uint64_t bytes) {
  if (bytes > 0 && reads_left-- == 0)
    return core::services().fail(SUCL_ERROR_UNSUPPORTED, 14, "this memory cannot be read", "Stop");
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return SUCL_SUCCESS;
}

thread_local int reads_so_far = 0;
sucl_status count_reads(sucl_backend_comm*, std::int32_t, void* to, std::uint64_t from,
                        std::uint64_t bytes) {
  reads_so_far += bytes > 0;
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return SUCL_SUCCESS;
}

// Plans of one node whose ranks read by `table`, which must stay.
core::backend_comm reading_channel(const backends& b, const sucl_comm_info& info,
                                   const sucl_backend& table, bool oversubscribed,
                                   const tune::table* tuned) {
  core::backend_comm memory_provider = b.ipc;
  memory_provider.table = &table;
  const std::vector<int> one_node(static_cast<std::size_t>(info.size), 0);
  std::string obstacle;
  core::backend_comm plan = core::make_plan_comm(
      memory_provider, {info.rank, info.size, one_node, {}, oversubscribed}, &obstacle, tuned);
  core::allow_reads(plan);
  // As the runtime does: no rank polls before all have made theirs.
  sucl_oob meeting = core::oob_split(*info.oob, info.rank);
  core::oob_free(meeting);
  return plan;
}

TEST(ipc_settings, take_any_word_for_true_and_false) {
  const auto open = [](const char* key, const char* value) {
    core::registry registry;
    return registry.try_open({"ipc", SUCL_TEST_MODULES "/libsucl_backend_ipc.so", {{key, value}}})
               ? std::string()
               : registry.reports().at(0).problem.value().hint;
  };
  for (const char* word : {"true", "1", "on", "yes", "Yes", "false", "0", "off", "no", "FALSE"})
    EXPECT_EQ(open("reads", word), "") << word;
  for (const char* word : {"", "2", "maybe", "truer"})
    EXPECT_NE(open("reads", word).find("reads = true or false, or 1 or 0"), std::string::npos);
  EXPECT_NE(open("handover", "1"), "");
}

// A read that fails ends the operation on all ranks that needed it, no rank waits for ever, and the
// next operation is right.
TEST(executor_reads, that_fail_are_errors_and_nothing_hangs) {
  const tune::table reading = table_of("read_two_shot", tune::memory_kind::system);
  for (const int when : {0, 1, 3, 7})
    for_ranks(3, [&](const backends& b, const sucl_comm_info& info) {
      sucl_backend table = *b.ipc.table;
      table.memory_read = fail_sometimes;
      const core::backend_comm plan = reading_channel(b, info, table, true, &reading);
      std::vector<std::int32_t> in(400000, info.rank), out(in.size());
      auto o = operation(kind::allreduce, type::int32, in.size(), op::sum);
      o.send = in.data();
      o.recv = out.data();
      reads_left = info.rank == 1 ? when : -1;
      const flight first = run(plan, o);
      EXPECT_EQ(first.status, SUCL_ERROR_UNSUPPORTED) << info.rank;
      EXPECT_NE(first.error.message.find("read"), std::string::npos);
      reads_left = -1;
      const flight second = run(plan, o);
      EXPECT_EQ(second.status, SUCL_SUCCESS) << second.error.message;
      EXPECT_EQ(std::count(out.begin(), out.end(), 3), static_cast<long>(out.size()));
      destroy(plan);
    });
}

// The same with reads that are counted.
core::backend_comm counting_channel(const backends& b, const sucl_comm_info& info,
                                    sucl_backend& table) {
  table = *b.ipc.table;
  table.memory_read = count_reads;
  reads_so_far = 0;
  return reading_channel(b, info, table, false, nullptr);
}
constexpr int turn = core::copy_mode_tuner::cold + core::copy_mode_tuner::trials;
// Staged operations before the first that is read.
int staged(std::uint64_t bytes) {
  return static_cast<int>(core::copy_mode_tuners::round_of(bytes) + core::copy_mode_tuner::trials);
}

// Both ways are tried before the faster one is taken, and all are right.
TEST(executor_reads, are_tried_after_staging) {
  for_ranks(2, [&](const backends& b, const sucl_comm_info& info) {
    sucl_backend table;
    const core::backend_comm plan = counting_channel(b, info, table);
    std::vector<std::int32_t> in(10000), out(2 * in.size());
    const int first = staged(in.size() * sizeof in[0]);
    for (int round = 0; round < first + 3 * turn; ++round) {
      EXPECT_TRUE(round != first || reads_so_far == 0) << "too early";
      EXPECT_TRUE(round != first + turn || reads_so_far >= turn) << reads_so_far;
      std::iota(in.begin(), in.end(), 100000 * info.rank + round);
      auto o = operation(kind::allgather, type::int32, in.size(), op::none);
      o.send = in.data();
      o.recv = out.data();
      const flight done = run(plan, o);
      ASSERT_EQ(done.status, SUCL_SUCCESS) << done.error.message;
      for (std::size_t i = 0; i < out.size(); i += 333) {
        const auto owner = static_cast<std::int32_t>(i / in.size());
        ASSERT_EQ(out[i], 100000 * owner + round + static_cast<std::int32_t>(i % in.size()));
      }
    }
    destroy(plan);
  });
}

sucl_status read_slowly(sucl_backend_comm*, std::int32_t, void* to, std::uint64_t from,
                        std::uint64_t bytes) {
  reads_so_far += bytes > 0;
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return SUCL_SUCCESS;
}

// While reading is slower, operations are prepared and run at once, on each rank as it likes, and
// those of other kinds between; when the time has come reading is tried again. All are right.
TEST(executor_reads, that_lose_are_not_spoken_of) {
  for_ranks(2, [&](const backends& b, const sucl_comm_info& info) {
    sucl_backend table = *b.ipc.table;
    table.memory_read = read_slowly;
    reads_so_far = 0;
    const core::backend_comm plan = reading_channel(b, info, table, false, nullptr);
    std::vector<std::int32_t> in(5000), out(2 * in.size());
    auto o = operation(kind::allgather, type::int32, in.size(), op::none);
    o.send = in.data();
    o.recv = out.data();
    std::int32_t one = info.rank, sum = 0;
    auto small = operation(kind::allreduce, type::int32, 1, op::sum);
    small.send = &one;
    small.recv = &sum;
    const auto p = core::prepare_run(plan, o);
    ASSERT_TRUE(p);
    const int first = staged(in.size() * sizeof in[0]), period = core::copy_mode_tuner::period;
    const auto run_well = [&](const sucl_operation& what) {
      EXPECT_EQ(run(plan, what).status, SUCL_SUCCESS);
    };
    int at_once = 0;
    for (int round = 0; round < period + first + 2 * turn; ++round) {
      std::iota(in.begin(), in.end(), 10000 * info.rank + round);
      const bool by_itself = (round + info.rank) % 3 != 0 && core::run_at_once(plan, *p);
      if (!by_itself) run_well(o);
      at_once += by_itself;
      if (round % 7 == 0) run_well(small);
      ASSERT_EQ(reads_so_far, round < first                   ? 0
                              : round < first + turn          ? round - first + 1
                              : round < period + first        ? turn
                              : round < period + first + turn ? turn + round - period - first + 1
                                                              : 2 * turn)
          << round;
      for (std::size_t i = 0; i < out.size(); i += 333) {
        const auto owner = static_cast<std::int32_t>(i / in.size());
        ASSERT_EQ(out[i], 10000 * owner + round + static_cast<std::int32_t>(i % in.size()));
      }
    }
    EXPECT_GT(at_once, 0);
    destroy(plan);
  });
}

// So are they for blocks whose lengths differ, with sizes in turns, and short ones between.
TEST(executor_reads, are_tried_for_blocks_of_their_own_lengths) {
  for_ranks(2, [&](const backends& b, const sucl_comm_info& info) {
    sucl_backend table;
    const core::backend_comm plan = counting_channel(b, info, table);
    const auto length = [](int from, int to, std::size_t longest) {
      return longest == 1 ? 1 : longest - static_cast<std::size_t>(from + 2 * to);
    };
    const int sooner = 3 * staged(120000), later = 3 * (staged(40000) + turn);
    for (int round = 0; round < later + 6 * turn; ++round) {
      const std::size_t longest = std::array<std::size_t, 3>{10000, 30000, 1}[round % 3u];
      EXPECT_TRUE(round != sooner || reads_so_far == 0) << "too early";
      EXPECT_TRUE(round != later || reads_so_far >= 2 * turn) << reads_so_far;
      std::vector<std::int32_t> in, expected;
      std::vector<std::uint64_t> send_counts, send_displs, recv_counts, recv_displs;
      for (int peer = 0; peer < 2; ++peer) {
        send_counts.push_back(length(info.rank, peer, longest));
        recv_counts.push_back(length(peer, info.rank, longest));
        send_displs.push_back(in.size());
        recv_displs.push_back(expected.size());
        for (std::size_t i = 0; i < send_counts.back(); ++i)
          in.push_back(1000000 * info.rank + 100 * round + peer + static_cast<std::int32_t>(i));
        for (std::size_t i = 0; i < recv_counts.back(); ++i)
          expected.push_back(1000000 * peer + 100 * round + info.rank +
                             static_cast<std::int32_t>(i));
      }
      std::vector<std::int32_t> out(expected.size());
      auto o = operation(kind::alltoallv, type::int32, 0, op::none);
      o.send = in.data();
      o.recv = out.data();
      o.send_counts = send_counts.data();
      o.send_displs = send_displs.data();
      o.recv_counts = recv_counts.data();
      o.recv_displs = recv_displs.data();
      const flight done = run(plan, o);
      ASSERT_EQ(done.status, SUCL_SUCCESS) << done.error.message;
      ASSERT_EQ(out, expected) << round;
    }
    destroy(plan);
  });
}

}  // namespace
