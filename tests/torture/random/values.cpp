// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "draw.hpp"

#include <bit>

namespace sucl::torture {
namespace {

// The layout of a number: its bits are sign, exponent and fraction.
struct format {
  int bits;
  int fraction;
  std::uint64_t sign() const { return std::uint64_t{1} << (bits - 1); }
  std::uint64_t max_fraction() const { return (std::uint64_t{1} << fraction) - 1; }
  std::uint64_t special() const { return (std::uint64_t{1} << (bits - 1 - fraction)) - 1; }
  std::uint64_t bias() const { return special() / 2; }
  std::uint64_t number(std::uint64_t exponent, std::uint64_t significant) const {
    return exponent << fraction | (significant & max_fraction());
  }
};

template <class T>
constexpr format format_of() {
  if constexpr (std::is_same_v<T, fp16>) return {16, 10};
  if constexpr (std::is_same_v<T, bf16>) return {16, 7};
  if constexpr (std::is_same_v<T, fp8_e4m3>) return {8, 3};
  if constexpr (std::is_same_v<T, fp8_e5m2>) return {8, 2};
  if constexpr (std::is_same_v<T, float>) return {32, 23};
  if constexpr (std::is_same_v<T, double>) return {64, 52};
}

// Numbers of one element: `column` is the same on all ranks, `own` is not.
struct draw {
  std::uint64_t column, own;
  int rank;
};

std::uint64_t finite_bits(format f, const draw& d, std::uint64_t h) {
  const std::uint64_t sign = (h & 1) != 0 ? f.sign() : 0;
  const std::uint64_t fraction = h >> 8;
  switch (d.column % 8) {
    case 0: {  // of very different size
      const std::uint64_t reach = f.bias() / 4;
      return sign | f.number(f.bias() - reach / 2 + (h >> 2) % (reach + 1), fraction);
    }
    case 1: return f.number(f.bias(), d.column >> 8);  // alike on all ranks
    case 2:                                            // cancel each other
      return (d.rank % 2 != 0 ? f.sign() : 0) | f.number(f.bias() + 1, d.column >> 8);
    default: return sign | f.number(f.bias() - 2 + (h >> 2) % 5, fraction);
  }
}

std::uint64_t special_bits(format f, const draw& d) {
  const std::uint64_t h = d.own;
  const std::uint64_t sign = (h & 1) != 0 ? f.sign() : 0;
  const std::uint64_t quiet = std::uint64_t{1} << (f.fraction - 1);
  const std::uint64_t nan = sign | f.number(f.special(), quiet | h >> 8);
  const std::uint64_t infinity = f.number(f.special(), 0);
  const auto finite = [&] { return finite_bits(f, {d.column >> 4, h, d.rank}, h); };
  switch (d.column % 16) {
    case 0: return sign;  // zeros of both signs
    case 1: return (d.column >> 8) % 4 == static_cast<unsigned>(d.rank) ? nan : finite();
    case 2: return nan;
    case 3: return (h >> 1) % 4 == 0 ? finite() : sign | infinity;
    case 4: return sign | f.number(0, h >> 8);             // subnormal
    case 5: return sign | f.number(f.special() - 1, ~0u);  // overflows
    case 6: return sign | f.number(1, (h >> 8) % 3);       // the least normal ones
    case 7:
      switch ((h >> 1) % 6) {
        case 0: return nan;
        case 1: return sign | infinity;
        case 2: return sign;
        case 3: return sign | f.number(0, h >> 8);
        default: return finite();
      }
    case 8: return (d.column >> 8) % 4 == static_cast<unsigned>(d.rank) ? sign | infinity : sign;
    default: return finite();
  }
}

template <class T>
T from_bits(std::uint64_t bits) {
  if constexpr (reference::is_narrow<T>) return T{static_cast<decltype(T::bits)>(bits)};
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<double>(bits);
}

template <class T>
T draw_value(values v, const draw& d) {
  if constexpr (std::is_integral_v<T>) {
    if (d.column % 8 == 0) return std::numeric_limits<T>::min();
    if (d.column % 8 == 1) return static_cast<T>((d.own & 1) - 1);  // 0 and all bits
    if (d.column % 8 == 2) return static_cast<T>(d.own % 3);
    return static_cast<T>(d.own);
  } else if constexpr (reference::is_complex<T>) {
    using V = typename T::value_type;
    const draw other{reference::mix(d.column, 1), reference::mix(d.own, 1), d.rank};
    return {draw_value<V>(v, d), draw_value<V>(v, other)};
  } else if constexpr (reference::is_loc<T>) {
    T result;
    std::memset(static_cast<void*>(&result), 0, sizeof result);
    result.value = draw_value<decltype(T::value)>(v, d);
    result.index = static_cast<std::int32_t>(d.own >> 40) % (d.column % 2 == 0 ? 4 : 1 << 20);
    return result;
  } else if constexpr (std::is_same_v<T, std::byte>) {
    return static_cast<T>(d.own);
  } else {
    const format f = format_of<T>();
    return from_bits<T>(v == values::finite ? finite_bits(f, d, d.own) : special_bits(f, d));
  }
}

}  // namespace

void write_inputs(const operation& o, int ranks, int rank, std::uint64_t index, std::size_t count,
                  std::byte* out) {
  if (o.op == op::none || o.drawn == values::exact)
    return reference::write_inputs(o.element, o.op, {ranks, rank, index + (o.key >> 20)}, count,
                                   out);
  reference::with_type(o.element.t, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    for (std::size_t i = 0; i < count; ++i, ++index, out += sizeof(T)) {
      const std::uint64_t column = reference::mix(o.key, index);
      const T v = draw_value<T>(
          o.drawn, {column, reference::mix(column, static_cast<std::uint64_t>(rank)), rank});
      std::memcpy(out, &v, sizeof(T));
    }
  });
}

}  // namespace sucl::torture
