// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The reductions of the executor.
#include "core/host_ops/fold.hpp"
#include "unit/shm_plan/executor_draw.hpp"

#include <gtest/gtest.h>

#include <cfenv>
#include <cstring>
#include <limits>
#include <random>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

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

// A program may have set its threads to round otherwise, to drop denormal numbers or to trap.
TEST(fold, rounds_to_nearest_even_whatever_the_thread_does) {
  const float small = 1e-40F, third = 1 / 3.F, one = 1, most = 3e38F;
  const void* drop[] = {&small, &small};
  const void* round[] = {&one, &third};
  const void* overflow[] = {&most, &most};
  const auto fold = core::find_fold(SUCL_TYPE_FP32, SUCL_OP_SUM);
  const float wanted[] = {small + small, one + third, std::numeric_limits<float>::infinity()};
  std::fenv_t before;
  std::fegetenv(&before);
  for (const int rounding : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    float got[3]{};
    std::fesetround(rounding);
#if defined(__x86_64__)
    const unsigned mode =
        (_mm_getcsr() | 0x8040) & ~0x1e80U;  // every trap but that of inexact ones
    _mm_setcsr(mode);
#endif
    fold(&got[0], drop, 2, 1, 1);
    fold(&got[1], round, 2, 1, 1);
    fold(&got[2], overflow, 2, 1, 1);
#if defined(__x86_64__)
    const unsigned after = _mm_getcsr();
    EXPECT_EQ(after, mode);
#endif
    const int rounding_after = std::fegetround();
    std::fesetenv(&before);
    EXPECT_EQ(rounding_after, rounding);
    EXPECT_EQ(std::memcmp(got, wanted, sizeof got), 0) << rounding;
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
