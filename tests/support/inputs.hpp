// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Inputs that depend on the rank and the index, chosen so that the order of a reduction changes
/// nothing of its result, and what reductions give of them.
#pragma once

#include "bench/reference/fold.hpp"

namespace sucl::reference {

/// One input: that of `rank` among `ranks` at `index`.
struct spot {
  int ranks;
  int rank;
  std::uint64_t index;
  std::uint64_t random() const { return mix(static_cast<std::uint64_t>(rank) + 1, index); }
  bool last() const { return rank == ranks - 1; }
};

/// True, mostly where all have to be, and false where one is enough.
inline bool bool_input(op o, spot s) {
  const std::uint64_t h = s.random();
  if (o == op::logical_xor) return (h & 1) != 0;
  return (h % 8 == 0) == (o == op::logical_or || o == op::max);
}

template <class T>
T integer_input(op o, spot s) {
  constexpr T least = std::numeric_limits<T>::min();
  constexpr T most = std::numeric_limits<T>::max();
  const std::uint64_t h = s.random();
  const T any = static_cast<T>(h);
  switch (o) {
    // Overflow is in special_elements.hpp.
    case op::sum: return static_cast<T>(any / static_cast<T>(s.ranks));
    case op::prod: {
      const int magnitude = s.rank < 6 && (h & 2) != 0 ? 2 : 1;  // 2^6 is in range of 8 bits
      return static_cast<T>(std::is_unsigned_v<T> || (h & 1) != 0 ? magnitude : -magnitude);
    }
    case op::avg:  // every rank at an end of the range; small negatives that do not divide;
                   // anything
      if (s.index % 5 == 0) return s.index % 2 == 0 ? most : least;
      if (s.index % 5 == 1) return static_cast<T>(std::is_signed_v<T> && s.rank == 0 ? -1 : 0);
      return any;
    case op::min:
    case op::max:
      if (s.index % 7 == static_cast<std::uint64_t>(s.rank)) return (h & 1) != 0 ? most : least;
      return any;
    case op::logical_and:
    case op::logical_or:
    case op::logical_xor:  // true has many faces: the low bit, the high bit, all bits
      switch (h % (o == op::logical_and ? 24 : 5)) {
        case 0: return T{0};
        case 1: return T{1};
        case 2: return static_cast<T>(std::uint64_t{1} << (8 * sizeof(T) - 1));
        case 3: return static_cast<T>(~std::uint64_t{0});
        default: return static_cast<T>(o == op::logical_or ? 0 : 2);
      }
    default: return any;
  }
}

/// A number with few significant bits, so that sums and products of a few of them are exact in
/// fp32, though not in 16 bits.
template <class T>
long double real_input(op o, spot s) {
  constexpr bool half = std::is_same_v<T, fp16>;
  constexpr bool brain = std::is_same_v<T, bf16>;
  const std::uint64_t h = s.random();
  if (o == op::prod) {
    static constexpr long double factors[] = {1, -1, 2, 0.5L, 1.5L, -1.25L};
    return factors[h % 6];
  }
  if (o == op::min || o == op::max) {
    constexpr bool finite = std::is_same_v<T, fp8_e4m3>;
    if (h % 97 == 0) return finite ? -448 : -std::numeric_limits<long double>::infinity();
    if (h % 97 == 1) return finite ? 448 : std::numeric_limits<long double>::infinity();
  } else if (half || brain) {
    // What a 16-bit accumulator loses; sums and averages near the largest number; subnormals.
    const long double big = half ? 2048 : 256;
    if (s.index % 7 == 3 && s.ranks > 2) return s.rank == 0 ? big : s.last() ? -big : 1;
    if (half && s.index % 11 == 5) return 65504;
    if (half && s.index % 13 == 6) return static_cast<long double>(h % 1000) * power_of_two(-24);
  }
  // Significant bits and the least one: less than the type's, so that the input is exact.
  const int bits = is_fp8<T>                  ? format_of<T>.fraction + 1
                   : half                     ? 10
                   : brain                    ? 7
                   : std::is_same_v<T, float> ? 20
                                              : 49;
  const int least = half ? -6 : brain ? -4 : is_fp8<T> || std::is_same_v<T, float> ? -2 : -10;
  const auto units = static_cast<std::int64_t>(h >> (64 - bits)) - (std::int64_t{1} << (bits - 1));
  return static_cast<long double>(units) * power_of_two(least);
}

/// The input of an element as the program holds it. With op::none any bit pattern.
template <class T>
T input(op o, spot s) {
  if constexpr (std::is_same_v<T, bool>) {
    return bool_input(o, s);
  } else if constexpr (std::is_integral_v<T>) {
    return integer_input<T>(o, s);
  } else if constexpr (is_narrow<T>) {
    return narrowed<T>(static_cast<double>(real_input<T>(o, s)));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(real_input<T>(o, s));
  } else if constexpr (is_complex<T>) {
    using V = typename T::value_type;
    static const T factors[] = {{1, 0}, {0, 1}, {-1, 0}, {1, 1}, {0, -2}, {2, -1}};
    if (o == op::prod) return factors[s.random() % 6];
    return {input<V>(o, s), input<V>(o, {s.ranks, s.rank, ~s.index})};
  } else if constexpr (is_loc<T>) {
    using V = decltype(T::value);
    T result;
    std::memset(static_cast<void*>(&result), 0, sizeof result);
    const std::uint64_t h = s.random();
    result.value = static_cast<V>(static_cast<int>(h % 3) - 1);  // many ties
    if (h % 13 == 0) result.value = std::numeric_limits<V>::max();
    if (h % 13 == 1) result.value = std::numeric_limits<V>::lowest();
    result.index = static_cast<std::int32_t>((h >> 32) % (s.index % 2 == 0 ? 3 : 0x7fffffff));
    return result;
  } else {
    return static_cast<T>(s.random());
  }
}

/// Writes the inputs of `count` indices. Elements that are only moved are any bytes.
inline void write_inputs(element e, op o, spot s, std::size_t count, std::byte* out) {
  if (o == op::none) {
    for (std::size_t i = 0; i < count; ++i, ++s.index)
      for (std::size_t b = 0; b < e.size; b += 8) {
        const std::uint64_t word = mix(s.random(), b / 8);
        const std::size_t bytes = std::min<std::size_t>(8, e.size - b);
        std::memcpy(out, &word, bytes);
        out += bytes;
      }
    return;
  }
  with_type(e.t, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    for (std::size_t i = 0; i < count; ++i, ++s.index, out += sizeof(T)) {
      const T v = input<T>(o, s);
      std::memcpy(out, &v, sizeof(T));
    }
  });
}

/// Writes the reduction over the ranks first to last.
inline void write_folds(element e, op o, spot s, int first, int last, std::size_t count,
                        std::byte* out) {
  with_type(e.t, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    for (std::size_t i = 0; i < count; ++i, ++s.index, out += sizeof(T)) {
      const T v = fold<T>(o, last - first + 1,
                          [&](int r) { return input<T>(o, {s.ranks, first + r, s.index}); });
      std::memcpy(out, &v, sizeof(T));
    }
  });
}

/// Whether two narrow floats differ by the least subnormal number at most: what dividing each of
/// two numbers before they are added costs, and not after.
inline bool a_subnormal_apart(element e, const std::byte* a, const std::byte* b) {
  return with_type(e.t, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    if constexpr (is_narrow<T>) {
      const double least = std::is_same_v<T, fp16> ? 0x1p-24 : 0x1p-133;
      return std::abs(widened(read<T>(a)) - widened(read<T>(b))) <= least;
    }
    return false;
  });
}

}  // namespace sucl::reference
