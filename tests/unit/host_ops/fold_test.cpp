// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The reductions of the executor.
#include "core/host_ops/fold.hpp"
#include "unit/shm_plan/executor_draw.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace {

using namespace sucl;
using namespace sucl::testing;

// All instruction sets give the same bits, for one source to five and odd offsets and lengths.
TEST(fold, is_the_same_with_every_instruction_set) {
  using core::instruction_set;
  std::mt19937_64 random(5);
  for (sucl_type t = 1; t < SUCL_TYPE_COUNT; ++t) {
    for (sucl_op o = 1; o < SUCL_OP_COUNT; ++o) {
      const auto base = core::find_fold(instruction_set::baseline, t, o);
      EXPECT_EQ(base != nullptr, defined(static_cast<op>(o), static_cast<type>(t)));
      if (!base) continue;
      const std::size_t one = size_of(static_cast<type>(t));
      for (const std::size_t sources : {1, 2, 3, 5}) {
        const std::uint64_t n = random() % 1500;
        std::vector<bytes> in(sources, bytes(n * one + 3));
        std::vector<const void*> from;
        for (bytes& b : in) {
          for (std::uint64_t i = 0; i < n; ++i)
            write_element(static_cast<type>(t), random(), b.data() + 3 + i * one);
          from.push_back(b.data() + 3);
        }
        bytes want(n * one + 1), got(n * one + 1);
        const auto bare = [&](const bytes& b) {
          return without_padding(static_cast<type>(t), 1, b);
        };
        base(want.data() + 1, from.data(), sources, n, 3);
        for (const auto set : {instruction_set::avx2, instruction_set::avx512}) {
          if (set < core::best_instruction_set()) continue;
          core::find_fold(set, t, o)(got.data() + 1, from.data(), sources, n, 3);
          EXPECT_EQ(bare(got), bare(want))
              << name(static_cast<type>(t)) << " " << name(static_cast<op>(o)) << " "
              << core::name(set) << " of " << sources;
        }
        auto rest = from;
        core::fold_nontemporal(base, one, got.data() + 1, rest.data(), sources, n, 3);
        EXPECT_EQ(bare(got), bare(want)) << name(static_cast<type>(t)) << " by non-temporal stores";
        // The result may replace any source.
        const std::size_t at = random() % sources;
        base(in[at].data() + 3, from.data(), sources, n, 3);
        std::memcpy(got.data() + 1, in[at].data() + 3, n * one);
        EXPECT_EQ(bare(got), bare(want));
      }
    }
  }
}

TEST(fold, rounds_16_bit_floats_once) {
  // 1 + 2^-11 + 2^-11 is 1 + 2^-10 when rounded once, and 1 when rounded twice.
  const std::uint16_t big = 0x3c00, small = 0x1000;
  const void* from[] = {&big, &small, &small, &small};
  std::uint16_t sum = 0;
  core::find_fold(SUCL_TYPE_FP16, SUCL_OP_SUM)(&sum, from, 3, 1, 1);
  EXPECT_EQ(sum, 0x3c01);
}

}  // namespace
