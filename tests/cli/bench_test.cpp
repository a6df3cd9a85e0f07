// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "bench/operations/expected.hpp"
#include "bench/operations/problem.hpp"
#include "bench/results/report.hpp"
#include "bench/results/statistics.hpp"
#include "support/special_elements.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

namespace sucl::bench {
namespace {

constexpr std::byte untouched{0x5b};

problem make(kind of, type t, op o, int ranks, int rank, std::uint64_t count) {
  problem p;
  p.of = of;
  p.element = t;
  p.reduction = o;
  p.ranks = ranks;
  p.rank = rank;
  p.count = count;
  return p;
}

template <class T>
T at(const std::vector<std::byte>& memory, std::size_t index) {
  T value;
  std::memcpy(&value, &memory[index * sizeof(T)], sizeof(T));
  return value;
}

TEST(Statistics, MedianAndPercentileOfFewAndMany) {
  EXPECT_EQ(summarise({}).median, 0);
  const statistics one = summarise({7});
  EXPECT_EQ(one.median, 7);
  EXPECT_EQ(one.p95, 7);
  const statistics even = summarise({4, 1, 3, 2});
  EXPECT_EQ(even.median, 2.5);
  EXPECT_EQ(even.min, 1);
  EXPECT_EQ(even.p95, 4);
  std::vector<double> hundred(100);
  std::iota(hundred.rbegin(), hundred.rend(), 1);
  EXPECT_EQ(summarise(hundred).p95, 95);
  EXPECT_EQ(summarise(hundred).median, 50.5);
}

TEST(Reference, IsTheRuleForEveryTypeAndOp) {
  constexpr int ranks = 3;
  constexpr std::uint64_t n = 40;
  for (int t = 1; t < SUCL_TYPE_COUNT; ++t)
    for (int o = 1; o < SUCL_OP_COUNT; ++o) {
      const type of = static_cast<type>(t);
      if (!defined(static_cast<op>(o), of)) continue;
      const problem p = make(kind::allreduce, of, static_cast<op>(o), ranks, 0, n);
      const auto expected = make_expected(p, untouched);
      std::vector<std::vector<std::byte>> inputs;
      for (int rank = 0; rank < ranks; ++rank) inputs.push_back(make_input(p, rank, n));
      const std::size_t one = size_of(of);
      for (std::size_t i = 0; i < n; ++i) {
        std::vector<const std::byte*> from;
        for (const auto& input : inputs) from.push_back(&input[i * one]);
        const reference::value is(&expected[i * one], &expected[i * one] + one);
        ASSERT_EQ(reference::bare(of, is),
                  reference::bare(of, reference::reduce(of, p.reduction, from)))
            << name(of) << " " << name(p.reduction);
      }
    }
}

TEST(Reference, SumsAreTheSumsOfTheInputs) {
  const problem p = make(kind::allreduce, type::fp32, op::sum, 3, 1, 50);
  const auto expected = make_expected(p, untouched);
  float differing = 0;
  for (std::size_t i = 0; i < 50; ++i) {
    float sum = 0;
    for (int rank = 0; rank < 3; ++rank) sum += at<float>(make_input(p, rank, 50), i);
    EXPECT_EQ(at<float>(expected, i), sum);
    differing += std::abs(sum);
  }
  EXPECT_GT(differing, 0) << "inputs of zeros would prove nothing";
}

TEST(Reference, MovedBlocksComeFromTheRightOffset) {
  const problem p = make(kind::alltoall, type::int16, op::none, 3, 1, 4);
  const auto expected = make_expected(p, untouched);
  ASSERT_EQ(expected.size(), 3 * 4 * 2u);
  for (int from = 0; from < 3; ++from) {
    const auto input = make_input(p, from, 12);
    EXPECT_EQ(std::memcmp(&expected[static_cast<std::size_t>(from) * 8], &input[1 * 8], 8), 0);
  }
}

TEST(Reference, ExclusiveScanLeavesTheFirstRankAlone) {
  const problem first = make(kind::exscan, type::int32, op::sum, 3, 0, 5);
  for (const std::byte b : make_expected(first, untouched)) EXPECT_EQ(b, untouched);
  const problem second = make(kind::exscan, type::int32, op::sum, 3, 1, 5);
  EXPECT_EQ(make_expected(second, untouched), make_input(second, 0, 5));
}

TEST(Reference, TheRootOfABroadcastKeepsItsInput) {
  for (const int rank : {0, 1}) {
    const problem p = make(kind::broadcast, type::fp64, op::none, 2, rank, 5);
    EXPECT_EQ(make_expected(p, untouched), make_input(p, 0, 5));
  }
}

TEST(Reference, RanksReceiveOnlyWhereTheyShould) {
  EXPECT_EQ(recv_elements(make(kind::gather, type::int8, op::none, 4, 0, 3)), 12u);
  EXPECT_EQ(recv_elements(make(kind::gather, type::int8, op::none, 4, 1, 3)), 0u);
  EXPECT_EQ(send_elements(make(kind::scatter, type::int8, op::none, 4, 1, 3)), 0u);
  EXPECT_EQ(send_elements(make(kind::reduce_scatter, type::int8, op::sum, 4, 1, 3)), 12u);
}

TEST(Reference, HalfPrecisionAveragesAreRoundedOnce) {
  // A third of whole numbers up to 150, to 11 bits: compared with float arithmetic, bit by bit.
  const problem p = make(kind::allreduce, type::fp16, op::avg, 3, 0, 200);
  const auto expected = make_expected(p, untouched);
  const auto value = [](std::uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const double fraction = bits & 1023;
    const double size =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
    return bits >> 15 ? -size : size;
  };
  for (std::size_t i = 0; i < 200; ++i) {
    double exact = 0;
    for (int rank = 0; rank < 3; ++rank)
      exact += value(at<std::uint16_t>(make_input(p, rank, 200), i));
    exact /= 3;
    const auto bits = at<std::uint16_t>(expected, i);
    const double error = std::abs(value(bits) - exact);
    const auto up = static_cast<std::uint16_t>(bits + 1);
    const auto down = static_cast<std::uint16_t>(bits - 1);
    EXPECT_LE(error, std::abs(value(up) - exact));
    if ((bits & 0x7fff) != 0) {
      EXPECT_LE(error, std::abs(value(down) - exact));
    }
  }
}

TEST(Reference, DifferencesAreFoundAndNamed) {
  const problem p = make(kind::allreduce, type::int32, op::sum, 2, 0, 4);
  const auto expected = make_expected(p, untouched);
  EXPECT_EQ(find_difference(p, expected, expected), "");
  auto wrong = expected;
  const int seven = at<int>(expected, 2) + 7;
  std::memcpy(&wrong[8], &seven, 4);
  EXPECT_EQ(find_difference(p, expected, wrong), "element 2 is " + std::to_string(seven) +
                                                     ", should be " +
                                                     std::to_string(at<int>(expected, 2)));
}

TEST(Reference, PaddingOfPairsDoesNotCount) {
  const problem p = make(kind::allreduce, type::fp64_loc, op::minloc, 2, 0, 2);
  const auto expected = make_expected(p, untouched);
  auto other = expected;
  other[13] = std::byte{1};
  EXPECT_EQ(find_difference(p, expected, other), "");
  other[8] ^= std::byte{1};
  EXPECT_NE(find_difference(p, expected, other), "");
}

row make_row(const char* impl, const char* form, std::uint64_t bytes, double us, bool valid) {
  return {"allreduce", "device", "fp32", "sum", 2, bytes, {impl, form, 10, {us, us, us}, valid}};
}

TEST(Report, TablesHaveALineForEachSizeAndRatios) {
  const std::vector<row> rows{make_row("sucl", "blocking", 4, 2, true),
                              make_row("mpi", "blocking", 4, 1, true),
                              make_row("sucl", "blocking", 1024, 12.34, false),
                              make_row("mpi", "blocking", 1024, 1250, true)};
  EXPECT_EQ(as_tables(rows),
            "\nallreduce, device, fp32, sum, 2 ranks: median us of the slowest rank\n"
            "     bytes  sucl blocking       mpi  blocking/mpi\n"
            "         4           2.00      1.00          2.00\n"
            "       1Ki          WRONG      1250             -\n");
  EXPECT_EQ(validity_summary(rows), "FAILED: 1 of 4 results are wrong");
  EXPECT_FALSE(all_valid(rows));
  EXPECT_EQ(validity_summary({rows[0], rows[1]}), "all 2 results valid");
}

TEST(Report, JsonRowsHaveTheirKeysInOrder) {
  const auto json = as_json({{"sucl", "1"}}, {make_row("sucl", "event", 8, 1.5, true)});
  EXPECT_EQ(
      json.dump(),
      "{\"header\":{\"sucl\":\"1\"},\"rows\":[{\"collective\":\"allreduce\",\"impl\":\"sucl\","
      "\"form\":\"event\",\"memory\":\"device\",\"type\":\"fp32\",\"op\":\"sum\",\"ranks\":2,"
      "\"bytes\":8,\"median_us\":1.5,\"p95_us\":1.5,\"min_us\":1.5,\"iterations\":10,"
      "\"busbw_gbs\":0.005333333333333333,\"valid\":true}]}");
}

}  // namespace
}  // namespace sucl::bench
