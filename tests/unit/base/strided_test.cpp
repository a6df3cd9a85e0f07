// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/elements/strided.hpp"
#include "kernels/block/block.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using sucl::base::strided;

// The elements of a block in dense order, by three plain loops.
std::vector<std::uint64_t> indices(const strided& s) {
  std::vector<std::uint64_t> result;
  for (std::uint64_t i = 0; i < s.range[0]; ++i)
    for (std::uint64_t j = 0; j < s.range[1]; ++j)
      for (std::uint64_t k = 0; k < s.range[2]; ++k)
        result.push_back(((s.offset[0] + i) * s.extent[1] + s.offset[1] + j) * s.extent[2] +
                         s.offset[2] + k);
  return result;
}

std::vector<strided> layouts() {
  std::vector<strided> result;
  for (std::uint64_t a : {1, 2, 3})
    for (std::uint64_t b : {1, 3})
      for (std::uint64_t c : {1, 4})
        for (std::uint64_t margins = 0; margins < 8; ++margins) {
          const std::uint64_t x = margins & 1;
          const std::uint64_t y = margins >> 1 & 1;
          const std::uint64_t z = margins >> 2 & 1;
          result.push_back({{a + 2 * x, b + 2 * y, c + z}, {x, y, z}, {a, b, c}, 1});
        }
  return result;
}

TEST(strided, knows_each_index) {
  for (const strided& s : layouts()) {
    const auto wanted = indices(s);
    ASSERT_EQ(s.count(), wanted.size());
    for (std::uint64_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(s.array_index(i), wanted[i]);
  }
}

TEST(strided, is_contiguous_exactly_if_its_indices_are) {
  for (const strided& s : layouts()) {
    const auto all = indices(s);
    EXPECT_EQ(s.contiguous(), all.back() - all.front() + 1 == all.size());
  }
}

TEST(strided, an_empty_block_is_contiguous) {
  const strided s{{4, 4, 4}, {1, 1, 1}, {2, 0, 2}, 4};
  EXPECT_EQ(s.count(), 0u);
  EXPECT_TRUE(s.contiguous());
  s.for_each_run(0, 0, [](auto...) { FAIL(); });
}

TEST(strided, visits_as_few_runs_as_there_are) {
  int runs = 0;
  const auto count = [&](auto, auto, auto) { ++runs; };
  const strided planes{{5, 3, 4}, {1, 0, 0}, {2, 3, 4}, 1};
  planes.for_each_run(0, planes.count(), count);
  EXPECT_EQ(runs, 1);
  runs = 0;
  const strided rows{{5, 4, 4}, {1, 1, 0}, {2, 3, 4}, 1};
  rows.for_each_run(0, rows.count(), count);
  EXPECT_EQ(runs, 2);
}

TEST(strided, packs_and_unpacks_any_part) {
  for (strided s : layouts())
    for (std::uint64_t size : {1, 2, 12}) {
      s.element_size = size;
      const auto all = indices(s);
      std::vector<unsigned char> array(s.extent[0] * s.extent[1] * s.extent[2] * size);
      for (std::size_t i = 0; i < array.size(); ++i) array[i] = static_cast<unsigned char>(i * 7);
      for (std::uint64_t first = 0; first <= s.count(); ++first)
        for (std::uint64_t n = 0; first + n <= s.count(); ++n) {
          std::vector<unsigned char> dense(n * size + 1, 0xcd);
          pack(s, dense.data(), array.data(), first, n);
          for (std::uint64_t i = 0; i < n * size; ++i)
            ASSERT_EQ(dense[i], array[all[first + i / size] * size + i % size]);
          EXPECT_EQ(dense.back(), 0xcd);

          std::vector<unsigned char> into(array.size(), 0);
          unpack(s, into.data(), dense.data(), first, n);
          std::vector<unsigned char> wanted(array.size(), 0);
          for (std::uint64_t i = first; i < first + n; ++i)
            std::copy_n(array.begin() + static_cast<std::ptrdiff_t>(all[i] * size), size,
                        wanted.begin() + static_cast<std::ptrdiff_t>(all[i] * size));
          ASSERT_EQ(into, wanted);
        }
    }
}

/// One work item of 2 groups of 3.
struct item {
  int number;
  int thread() const { return number % 3; }
  int threads() const { return 3; }
  int group() const { return number / 3; }
  int groups() const { return 2; }
};

template <class Unit>
void compare_on_devices(const strided& s, std::uint64_t n) {
  const auto elements = s.extent[0] * s.extent[1] * s.extent[2];
  std::vector<Unit> array(elements * s.element_size / sizeof(Unit) + 1);
  auto* bytes = reinterpret_cast<unsigned char*>(array.data());
  for (std::size_t i = 0; i < array.size() * sizeof(Unit); ++i)
    bytes[i] = static_cast<unsigned char>(i * 7);
  std::vector<Unit> dense(n * s.element_size / sizeof(Unit)), wanted = dense;
  sucl::base::pack(s, wanted.data(), array.data(), 0, n);
  const auto layout = sucl::kernels::layout_of(s, n, sizeof(Unit));
  for (int i = 0; i < 6; ++i) sucl::kernels::pack(item{i}, layout, dense.data(), array.data());
  EXPECT_EQ(dense, wanted);
  for (Unit& unit : dense) unit = static_cast<Unit>(~unit);
  auto changed = array;
  sucl::base::unpack(s, changed.data(), dense.data(), 0, n);
  for (int i = 0; i < 6; ++i) sucl::kernels::unpack(item{i}, layout, array.data(), dense.data());
  EXPECT_EQ(array, changed);
}

TEST(strided, is_packed_by_work_items_too) {
  for (strided s : layouts())
    for (std::uint64_t size : {1, 2, 12}) {
      s.element_size = size;
      for (std::uint64_t n = 0; n <= s.count(); n += std::max<std::uint64_t>(1, s.count() / 3)) {
        compare_on_devices<std::uint8_t>(s, n);
        if (size % 2 == 0) compare_on_devices<std::uint16_t>(s, n);
        if (size % 4 == 0) compare_on_devices<std::uint32_t>(s, n);
      }
    }
}

TEST(strided, has_the_largest_unit_that_fits) {
  using sucl::kernels::unit_of;
  EXPECT_EQ(unit_of({{1, 8, 8}, {0, 0, 4}, {1, 8, 4}, 4}, 16), 16u);
  EXPECT_EQ(unit_of({{1, 8, 8}, {0, 0, 2}, {1, 8, 4}, 4}, 16), 8u);
  EXPECT_EQ(unit_of({{1, 8, 9}, {0, 0, 4}, {1, 8, 4}, 4}, 16), 4u);
  EXPECT_EQ(unit_of({{1, 8, 9}, {0, 1, 3}, {1, 7, 5}, 2}, 16), 2u);
  EXPECT_EQ(unit_of({{1, 8, 8}, {0, 0, 4}, {1, 8, 4}, 3}, 16), 4u);
}

}  // namespace
