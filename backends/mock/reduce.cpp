// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "reduce.hpp"

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

namespace sucl::mock {
namespace {

__extension__ using wide_int = __int128;

// A kind of element: how it lies in memory, and the type it is folded in.
template <class T, class Wide>
struct plain {
  using stored = T;
  using wide = Wide;
  static Wide widen(T value) { return static_cast<Wide>(value); }
  static T narrow(Wide value) { return static_cast<T>(value); }
};

template <class T>
struct pair {
  T value;
  std::int32_t index;
};

std::uint16_t round_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  const std::uint32_t half = 0x7fffu + ((bits >> 16) & 1u);  // ties go to the even neighbour
  return static_cast<std::uint16_t>((bits + half) >> 16);
}

struct bf16 {
  using stored = std::uint16_t;
  using wide = float;
  static float widen(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  static std::uint16_t narrow(float value) { return round_bf16(value); }
};

// Tabulated by value rather than by bit tricks: binary16 has ten bits of fraction, exponents from
// -14 to 15, and steps of 2^-24 below the smallest normal number.
std::uint16_t round_fp16(float value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000u : 0u;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 65520.0) return static_cast<std::uint16_t>(sign | 0x7c00u);
  int exponent = -14;
  if (magnitude >= 0x1p-14) exponent = std::ilogb(magnitude);
  const double steps = std::nearbyint(std::ldexp(magnitude, 10 - exponent));  // exact, then rounded
  // A carry out of the fraction lands in the exponent field, where it belongs.
  const int biased = exponent + 14;
  return static_cast<std::uint16_t>(sign | (static_cast<int>(steps) + (biased << 10)));
}

struct fp16 {
  using stored = std::uint16_t;
  using wide = float;
  static float widen(std::uint16_t bits) {
    const int exponent = (bits >> 10) & 31;
    const int fraction = bits & 1023;
    float value = 0;
    if (exponent == 31)
      value = fraction ? std::numeric_limits<float>::quiet_NaN()
                       : std::numeric_limits<float>::infinity();
    else if (exponent == 0)
      value = std::ldexp(static_cast<float>(fraction), -24);
    else
      value = std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
    return bits & 0x8000 ? -value : value;
  }
  static std::uint16_t narrow(float value) { return round_fp16(value); }
};

template <class Element, class Combine>
void fold(const std::vector<const std::byte*>& inputs, std::uint64_t count, std::byte* out,
          Combine combine, int divisor = 1) {
  using stored = typename Element::stored;
  const auto at = [](const std::byte* base, std::uint64_t i) {
    stored value;
    std::memcpy(&value, base + i * sizeof(stored), sizeof(stored));
    return Element::widen(value);
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    auto sum = at(inputs[0], i);
    for (std::size_t r = 1; r < inputs.size(); ++r) sum = combine(sum, at(inputs[r], i));
    if (divisor != 1) {
      if constexpr (!std::is_class_v<decltype(sum)>) {
        sum = static_cast<decltype(sum)>(sum / static_cast<decltype(sum)>(divisor));
      } else if constexpr (requires { sum.real(); }) {
        sum /= static_cast<typename decltype(sum)::value_type>(divisor);
      }
    }
    const stored value = Element::narrow(sum);
    std::memcpy(out + i * sizeof(stored), &value, sizeof(stored));
  }
}

struct task {
  sucl_op op;
  const std::vector<const std::byte*>& inputs;
  std::uint64_t count;
  int ranks;
  std::byte* out;

  template <class Element, class Combine>
  void run(Combine combine, int divisor = 1) const {
    fold<Element>(inputs, count, out, combine, divisor);
  }
};

// Sum, prod, avg: all numbers. Integers wrap as unsigned ones do, except for avg's exact sum.
template <class Element>
void arithmetic(const task& t) {
  using wide = typename Element::wide;
  const auto add = [](wide a, wide b) { return static_cast<wide>(a + b); };
  if (t.op == SUCL_OP_SUM) t.run<Element>(add);
  if (t.op == SUCL_OP_PROD) t.run<Element>([](wide a, wide b) { return static_cast<wide>(a * b); });
  if (t.op == SUCL_OP_AVG) t.run<Element>(add, t.ranks);
}

template <class Element>
void extremum(const task& t) {
  using wide = typename Element::wide;
  if (t.op == SUCL_OP_MIN) t.run<Element>([](wide a, wide b) { return b < a ? b : a; });
  if (t.op == SUCL_OP_MAX) t.run<Element>([](wide a, wide b) { return a < b ? b : a; });
}

template <class Element>
void real(const task& t) {
  arithmetic<Element>(t);
  extremum<Element>(t);
}

template <class T>
void bitwise(const task& t) {
  using element = plain<T, T>;
  switch (t.op) {
    case SUCL_OP_LOGICAL_AND: return t.run<element>([](T a, T b) { return T(a && b); });
    case SUCL_OP_LOGICAL_OR: return t.run<element>([](T a, T b) { return T(a || b); });
    case SUCL_OP_LOGICAL_XOR: return t.run<element>([](T a, T b) { return T(!a != !b); });
    case SUCL_OP_BIT_AND: return t.run<element>([](T a, T b) { return T(a & b); });
    case SUCL_OP_BIT_OR: return t.run<element>([](T a, T b) { return T(a | b); });
    case SUCL_OP_BIT_XOR: return t.run<element>([](T a, T b) { return T(a ^ b); });
    default: return;
  }
}

template <class T>
void integer(const task& t) {
  if (t.op == SUCL_OP_AVG) return arithmetic<plain<T, wide_int>>(t);
  if (t.op == SUCL_OP_SUM || t.op == SUCL_OP_PROD) return arithmetic<plain<T, std::uint64_t>>(t);
  extremum<plain<T, T>>(t);
  bitwise<T>(t);
}

template <class T>
void located(const task& t) {
  using element = plain<pair<T>, pair<T>>;
  const auto first = [](pair<T> a, pair<T> b) { return b.index < a.index ? b : a; };
  if (t.op == SUCL_OP_MINLOC)
    t.run<element>([&](pair<T> a, pair<T> b) {
      return b.value < a.value ? b : a.value < b.value ? a : first(a, b);
    });
  else
    t.run<element>([&](pair<T> a, pair<T> b) {
      return a.value < b.value ? b : b.value < a.value ? a : first(a, b);
    });
}

enum class family { none, integer, real, complex, located };

struct row {
  std::uint64_t size;
  family of;
  void (*reduce)(const task&);
};

template <class T, class Wide>
using complex_of = plain<std::complex<T>, std::complex<Wide>>;

constexpr row rows[SUCL_TYPE_COUNT] = {
    {0, family::none, nullptr},
    {1, family::integer, integer<std::int8_t>},
    {1, family::integer, integer<std::uint8_t>},
    {2, family::integer, integer<std::int16_t>},
    {2, family::integer, integer<std::uint16_t>},
    {4, family::integer, integer<std::int32_t>},
    {4, family::integer, integer<std::uint32_t>},
    {8, family::integer, integer<std::int64_t>},
    {8, family::integer, integer<std::uint64_t>},
    {2, family::real, real<fp16>},
    {2, family::real, real<bf16>},
    {4, family::real, real<plain<float, double>>},
    {8, family::real, real<plain<double, long double>>},
    {8, family::complex, arithmetic<complex_of<float, double>>},
    {16, family::complex, arithmetic<complex_of<double, long double>>},
    {sizeof(pair<std::int16_t>), family::located, located<std::int16_t>},
    {sizeof(pair<std::int32_t>), family::located, located<std::int32_t>},
    {sizeof(pair<std::int64_t>), family::located, located<std::int64_t>},
    {sizeof(pair<float>), family::located, located<float>},
    {sizeof(pair<double>), family::located, located<double>},
};

const row* find(sucl_type type) {
  return type >= 0 && type < SUCL_TYPE_COUNT ? &rows[type] : nullptr;
}

}  // namespace

std::uint64_t size_of(sucl_type type) {
  const row* r = find(type);
  return r ? r->size : 0;
}

bool defined(sucl_op op, sucl_type type) {
  const row* r = find(type);
  if (!r || op <= SUCL_OP_NONE || op >= SUCL_OP_COUNT) return false;
  switch (r->of) {
    case family::none: return false;
    case family::integer: return op <= SUCL_OP_BIT_XOR;
    case family::real: return op <= SUCL_OP_AVG;
    case family::complex: return op == SUCL_OP_SUM || op == SUCL_OP_PROD || op == SUCL_OP_AVG;
    case family::located: return op == SUCL_OP_MINLOC || op == SUCL_OP_MAXLOC;
  }
  return false;
}

void reduce(sucl_type type, sucl_op op, const std::vector<const std::byte*>& inputs,
            std::uint64_t count, int ranks, std::byte* out) {
  find(type)->reduce(task{op, inputs, count, ranks, out});
}

}  // namespace sucl::mock
