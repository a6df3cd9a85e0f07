// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/selection/call_board.hpp"

#include "core/operation/operation.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>

namespace sucl::core {
namespace {

struct part {
  alignas(64) std::array<std::byte, call_board::part_bytes> bytes{};
};

// A prepared run raises its flag before it shows its call, and may lose its processor in between.
TEST(call_board, tells_of_a_rank_that_shows_its_call_late) {
  std::array<part, 2> parts;
  call_board own({parts[0].bytes.data(), parts[1].bytes.data()}, 0);
  call_board other({parts[0].bytes.data(), parts[1].bytes.data()}, 1);
  const auto sum = signature_of(example_of(kind::allreduce, 400, type::int32, op::sum), 2);
  auto copied = example_of(kind::broadcast, 400, type::int32, op::none);
  copied.root = 1;
  const auto copy = signature_of(copied, 2);
  own.show(1, own.history_after(sum), sum);
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    other.show(1, other.history_after(copy), copy);
  });
  const error_info reported = own.report_mismatch(1, own.history_after(sum));
  late.join();
  EXPECT_EQ(reported.code, errc::mismatch);
  EXPECT_EQ(reported.message,
            "rank 0 called allreduce of 100 int32 with op sum, rank 1 called "
            "broadcast of 100 int32 from rank 1");
  EXPECT_EQ(other.diagnosis().message, reported.message);
}

}  // namespace
}  // namespace sucl::core
