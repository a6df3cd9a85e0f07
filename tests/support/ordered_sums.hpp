// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Inputs whose association shows in the bits of their sums and products, and what the fixed order
/// makes of them, written as a plain loop over the ranks: nothing of SuCL's own folds is used.
#pragma once

#include <sucl/types.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace sucl::testing {

namespace detail {

/// Element i of a rank: numbers of very different sizes that cancel, or factors near one.
inline double ordered_number(op reduction, int rank, std::uint64_t i) {
  const auto r = static_cast<std::uint64_t>(rank);
  if (reduction == op::prod) return 1.0 + static_cast<double>((r * 7 + i * 3) % 13) * 0.0123;
  constexpr double list[] = {1e20, 1, -1e20, 3.5e-3, 1e8, -1, 7e15, 0.1, -1e8};
  return list[(r * 2 + i) % 9] * static_cast<double>(1 + (i + r) % 5);
}

inline float from_bf16(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float f = 0;
  std::memcpy(&f, &wide, sizeof f);
  return f;
}
inline std::uint16_t to_bf16(float f) {  // of finite numbers, to nearest even
  std::uint32_t bits = 0;
  std::memcpy(&bits, &f, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// How an element lies in memory and what it is combined in.
template <class T>
struct plain_element {
  using wide = T;
  static T make(double re, double) { return static_cast<T>(re); }
  static T load(const std::byte* at) {
    T v{};
    std::memcpy(&v, at, sizeof v);
    return v;
  }
  static void store(std::byte* at, T v, int divisor) {
    if (divisor > 1) v = v / static_cast<T>(divisor);
    std::memcpy(at, &v, sizeof v);
  }
  static T multiply(T a, T b) { return a * b; }
};
template <class T>
struct complex_element : plain_element<std::complex<T>> {
  using wide = std::complex<T>;
  static wide make(double re, double im) { return {static_cast<T>(re), static_cast<T>(im)}; }
  static void store(std::byte* at, wide v, int divisor) {
    if (divisor > 1) v = {v.real() / static_cast<T>(divisor), v.imag() / static_cast<T>(divisor)};
    std::memcpy(at, &v, sizeof v);
  }
  static wide multiply(wide a, wide b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
};
struct bf16_element {
  using wide = float;
  static float make(double re, double) { return static_cast<float>(re); }
  static float load(const std::byte* at) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof bits);
    return from_bf16(bits);
  }
  // Averages of the tests' numbers are never so near to a tie that rounding to float first shows.
  static void store(std::byte* at, float v, int divisor) {
    const std::uint16_t bits = to_bf16(divisor > 1 ? v / static_cast<float>(divisor) : v);
    std::memcpy(at, &bits, sizeof bits);
  }
  static float multiply(float a, float b) { return a * b; }
};

template <class Use>
auto with_element(type t, const Use& use) {
  switch (t) {
    case type::fp32: return use(plain_element<float>{});
    case type::complex_fp32: return use(complex_element<float>{});
    case type::complex_fp64: return use(complex_element<double>{});
    case type::bf16: return use(bf16_element{});
    default: return use(plain_element<double>{});
  }
}

}  // namespace detail

/// The input of a rank.
inline std::vector<std::byte> ordered_input(type t, op reduction, int rank, std::uint64_t count) {
  return detail::with_element(t, [&](auto element) {
    const std::size_t size = size_of(t);
    std::vector<std::byte> data(count * size);
    for (std::uint64_t i = 0; i < count; ++i)
      element.store(data.data() + i * size,
                    element.make(detail::ordered_number(reduction, rank, i),
                                 detail::ordered_number(reduction, rank, i + 4) - 1),
                    1);
    return data;
  });
}

/// ((x0 op x1) op x2) op ... of the inputs of ranks [0, ranks), element by element, of elements
/// [first, first + count).
inline std::vector<std::byte> ordered_fold(type t, op reduction, int ranks, std::uint64_t first,
                                           std::uint64_t count, int divisor) {
  return detail::with_element(t, [&](auto element) {
    const std::size_t size = size_of(t);
    std::vector<std::byte> data(count * size);
    std::vector<std::vector<std::byte>> inputs;
    for (int r = 0; r < ranks; ++r) inputs.push_back(ordered_input(t, reduction, r, first + count));
    for (std::uint64_t i = 0; i < count; ++i) {
      auto sum = element.load(inputs[0].data() + (first + i) * size);
      for (int r = 1; r < ranks; ++r) {
        const auto next =
            element.load(inputs[static_cast<std::size_t>(r)].data() + (first + i) * size);
        sum = reduction == op::prod ? element.multiply(sum, next)
                                    : static_cast<decltype(sum)>(sum + next);
      }
      element.store(data.data() + i * size, sum, divisor);
    }
    return data;
  });
}

/// What a rank holds at the begin of recv after a reduction of ordered_input() with so many
/// elements a rank or a block; blocks of reduce_scatter have `count` + r elements. Empty: nothing.
inline std::vector<std::byte> ordered_result(kind k, type t, op reduction, int rank, int size,
                                             std::uint64_t count, int root) {
  const int divisor = reduction == op::avg ? size : 1;
  const auto r = static_cast<std::uint64_t>(rank);
  switch (k) {
    case kind::reduce:
      return rank == root ? ordered_fold(t, reduction, size, 0, count, divisor)
                          : std::vector<std::byte>{};
    case kind::reduce_scatter_block:
      return ordered_fold(t, reduction, size, r * count, count, divisor);
    case kind::reduce_scatter:
      return ordered_fold(t, reduction, size, r * count + r * (r - 1) / 2, count + r, divisor);
    case kind::scan: return ordered_fold(t, reduction, rank + 1, 0, count, divisor);
    case kind::exscan:
      return rank == 0 ? std::vector<std::byte>{}
                       : ordered_fold(t, reduction, rank, 0, count, divisor);
    default: return ordered_fold(t, reduction, size, 0, count, divisor);
  }
}

}  // namespace sucl::testing
