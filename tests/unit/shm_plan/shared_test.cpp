// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Where runs have their scratch: no two of them that may be in flight at once have the same bytes.
#include "backends/shm_plan/shared/shared.hpp"
#include "unit/shm_plan/executor_draw.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>

namespace {

using namespace sucl;
using namespace sucl::testing;

struct stretch {
  std::uint64_t begin, end;
  bool meets(const stretch& other) const { return begin < other.end && other.begin < end; }
};

// Bytes of scratch as plans need them: few, up to a slot, and all in between.
std::uint64_t draw_bytes(std::mt19937_64& random, std::uint64_t most) {
  const std::uint64_t of = random() % 3 == 0 ? most : std::uint64_t{1} << random() % 19;
  return random() % 4 == 0 ? of : 1 + random() % of;
}

void load_word(const backends& b, const sucl_comm_info& info, const core::sharing& how) {
  const core::placement where{info.rank, info.size, {0, 0}, {}};
  core::shared_memory memory(b.ipc, where, how);
  ASSERT_TRUE(memory.complete());
  std::mt19937_64 random(5);  // the same on every rank
  std::deque<stretch> under_way;
  std::uint64_t moved = 0;
  for (std::uint64_t number = 1; number <= 20000; ++number) {
    const std::uint64_t bytes = draw_bytes(random, how.slot_bytes);
    const auto need = memory.need_of(bytes);
    const std::uint64_t at = memory.scratch_at(need, number);
    EXPECT_EQ(memory.scratch_at(need, number), at) << "asking takes nothing";
    memory.take(need);
    const stretch mine{at, at + bytes};
    for (const stretch& other : under_way)
      ASSERT_FALSE(mine.meets(other)) << "run " << number << ", " << bytes << " bytes";
    under_way.push_back(mine);
    if (under_way.size() == how.slots) under_way.pop_front();
    moved = std::max(moved, at);
    if (number % 50 == 0)  // all of it is there
      std::memset(memory.parts()[info.rank] + at, 7, bytes);
  }
  EXPECT_GT(moved, how.slots * how.slot_bytes / 2);
}

TEST(scratch, of_runs_that_may_be_under_way_is_apart) {
  for_ranks(2, [](const backends& b, const sucl_comm_info& info) {
    for (const bool is_long : {true, false})
      for (const std::uint64_t slot : {256u << 10, 1u << 20})
        load_word(b, info, {4, slot, is_long});
  });
}

// Beside its word, whose slot the run has for itself.
TEST(scratch, of_short_runs_is_beside_their_words) {
  for_ranks(2, [](const backends& b, const sucl_comm_info& info) {
    core::shared_memory memory(b.ipc, {info.rank, info.size, {0, 0}, {}}, {});
    for (std::uint64_t number = 1; number < 9; ++number) {
      const auto need = memory.need_of(core::shared_memory::inline_bytes);
      const std::byte* scratch = memory.parts()[1] + memory.scratch_at(need, number);
      const std::uint64_t* word = memory.flag_at(memory.slot_of(number), 1, 0);
      EXPECT_EQ(static_cast<const void*>(scratch), static_cast<const void*>(word + 1));
      memory.take(need);
    }
    EXPECT_NE(memory.need_of(core::shared_memory::inline_bytes + 1).ring, 0u);
  });
}

}  // namespace
