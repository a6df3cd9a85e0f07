// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// One buffer in several roles of an operation: its blocks, and its sub-buffers.
#include "ranks/fixture.hpp"

namespace sucl::testing {
namespace {

constexpr std::size_t half = 1000;

struct parts_of_a_buffer : ::testing::Test {
  communicator& world = fixture().world;
  const int rank = world.rank();
  const int size = world.size();
  const int next = (rank + 1) % size;
  const int last = (rank + size - 1) % size;
  sycl::buffer<int, 1> whole{sycl::range<1>(2 * half)};

  void fill() {
    sycl::host_accessor all{whole};
    for (std::size_t i = 0; i < half; ++i) {
      all[i] = 1000 * rank + static_cast<int>(i);
      all[half + i] = -1;
    }
  }
  void expect_received() {
    sycl::host_accessor all{whole};
    for (std::size_t i = 0; i < half; ++i) {
      ASSERT_EQ(all[i], 1000 * rank + static_cast<int>(i)) << i;
      ASSERT_EQ(all[half + i], 1000 * last + static_cast<int>(i)) << i;
    }
  }

  /// Sends one half to the next rank while the other half receives, in each form.
  template <class Part>
  void exchange(const Part& first, const Part& second) {
    fill();
    world.sendrecv(first, next, second, last);
    expect_received();
    fill();
    world.blocking().sendrecv(first, next, second, last);
    expect_received();
    for (const bool blocking : {false, true}) {
      fill();
      group g(world);
      g.send(first, next);
      g.recv(second, last);
      blocking ? g.run() : static_cast<void>(g.submit());
      expect_received();
    }
  }
};

TEST_F(parts_of_a_buffer, as_blocks) {
  exchange(block<int, 1>(whole, 0, half), block<int, 1>(whole, half, half));
}

#ifndef SYCL_IMPLEMENTATION_ACPP  // which has no sub-buffers
TEST_F(parts_of_a_buffer, as_sub_buffers) {
  sycl::buffer<int, 1> first(whole, 0, half), second(whole, half, half);
  exchange(first, second);
}
#endif

}  // namespace
}  // namespace sucl::testing
