// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "reduce.hpp"

#include <algorithm>
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

// Results have one NaN: every bit but the sign.
template <class T>
T the_nan() {
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<T>(0x7fffffffu);
  else
    return std::bit_cast<T>(0x7fffffffffffffffu);
}

template <class T>
T with_the_nan(T v) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(v) ? the_nan<T>() : v;
  else
    return v;
}
template <class T>
std::complex<T> with_the_nan(std::complex<T> v) {
  return {with_the_nan(v.real()), with_the_nan(v.imag())};
}
template <class T>
pair<T> with_the_nan(pair<T> p) {
  return {with_the_nan(p.value), p.index};
}

// NaN first where it is asked for, and -0 below +0.
template <class T>
bool less(T a, T b, bool nan_first) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b))
      return nan_first ? std::isnan(a) && !std::isnan(b) : std::isnan(b) && !std::isnan(a);
    if (a == 0 && b == 0) return std::signbit(a) && !std::signbit(b);
  }
  return a < b;
}

// Floats of 16 bits and fewer, by value rather than by bit tricks: `Fraction` bits of it, `Least`
// the exponent of the smallest normal number. Sums are kept in fp32, quotients in fp64, and rounded
// once.
template <class Stored, int Fraction, int Least, bool HasInfinity>
struct small_float {
  using stored = Stored;
  using wide = float;
  static constexpr int all = (1 << (8 * sizeof(Stored) - 1)) - 1;  // every bit but the sign: a NaN
  static constexpr int infinity = HasInfinity ? all >> Fraction << Fraction : all;
  static float widen(Stored bits) {
    const int code = bits & all;
    const int exponent = code >> Fraction;
    const int fraction = code & ((1 << Fraction) - 1);
    float value = 0;
    if (code == all || (HasInfinity && code > infinity))
      value = std::numeric_limits<float>::quiet_NaN();
    else if (HasInfinity && code == infinity)
      value = std::numeric_limits<float>::infinity();
    else if (exponent == 0)
      value = std::ldexp(static_cast<float>(fraction), Least - Fraction);
    else
      value = std::ldexp(static_cast<float>((1 << Fraction) + fraction),
                         exponent - 1 + Least - Fraction);
    return bits > all ? -value : value;
  }
  static Stored narrow(double value) {
    if (std::isnan(value)) return all;
    const double magnitude = std::fabs(value);
    double code = infinity;
    if (std::isfinite(magnitude)) {
      const int exponent = magnitude == 0 ? Least : std::max(std::ilogb(magnitude), Least);
      // To even. A carry of the fraction lands in the exponent field, where it belongs.
      const double steps = std::nearbyint(std::ldexp(magnitude, Fraction - exponent));
      code = std::min(code, steps + std::ldexp(exponent - Least, Fraction));
    }
    const bool negative = std::signbit(value) && code != all;
    return static_cast<Stored>(static_cast<int>(code) | (negative ? all + 1 : 0));
  }
};
using fp16 = small_float<std::uint16_t, 10, -14, true>;
using bf16 = small_float<std::uint16_t, 7, -126, true>;
using fp8_e4m3 = small_float<std::uint8_t, 3, -6, false>;
using fp8_e5m2 = small_float<std::uint8_t, 2, -14, true>;

template <class Element>
constexpr bool is_small = requires { Element::infinity; };

template <class Element, class Combine>
void fold(const std::vector<const std::byte*>& inputs, std::uint64_t count, std::byte* out,
          Combine combine, int divisor = 1) {
  using stored = typename Element::stored;
  const auto at = [](const std::byte* base, std::uint64_t i) {
    stored value;
    std::memcpy(&value, base + i * sizeof(stored), sizeof(stored));
    return Element::widen(value);
  };
  if (inputs.size() == 1) {  // one contribution alone is the result, whatever its bits
    if (out != inputs[0]) std::memcpy(out, inputs[0], count * sizeof(stored));
    return;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    auto sum = at(inputs[0], i);
    for (std::size_t r = 1; r < inputs.size(); ++r) sum = combine(sum, at(inputs[r], i));
    stored value;
    if constexpr (is_small<Element>) {
      value = Element::narrow(static_cast<double>(sum) / divisor);
    } else {
      if (divisor != 1) {
        if constexpr (!std::is_class_v<decltype(sum)>) {
          sum = static_cast<decltype(sum)>(sum / static_cast<decltype(sum)>(divisor));
        } else if constexpr (requires { sum.real(); }) {
          sum /= static_cast<typename decltype(sum)::value_type>(divisor);
        }
      }
      value = Element::narrow(with_the_nan(sum));
    }
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
  if (t.op == SUCL_OP_PROD)
    t.run<Element>([](wide a, wide b) {
      if constexpr (requires { a.real(); }) {  // not the library's, which looks for infinities
        const auto product = [](auto x, auto y) { return x * y; };
        const auto re = product(a.real(), b.real()) - product(a.imag(), b.imag());
        return wide(re, product(a.real(), b.imag()) + product(a.imag(), b.real()));
      } else {
        return static_cast<wide>(a * b);
      }
    });
  if (t.op == SUCL_OP_AVG) t.run<Element>(add, t.ranks);
}

template <class Element>
void extremum(const task& t) {
  using wide = typename Element::wide;
  if (t.op == SUCL_OP_MIN) t.run<Element>([](wide a, wide b) { return less(b, a, true) ? b : a; });
  if (t.op == SUCL_OP_MAX) t.run<Element>([](wide a, wide b) { return less(a, b, false) ? b : a; });
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
  const auto before = [&](pair<T> a, pair<T> b) {
    const bool least = t.op == SUCL_OP_MINLOC;
    if (least ? less(a.value, b.value, true) : less(b.value, a.value, false)) return true;
    if (least ? less(b.value, a.value, true) : less(a.value, b.value, false)) return false;
    return a.index < b.index;
  };
  t.run<element>([&](pair<T> a, pair<T> b) { return before(b, a) ? b : a; });
}

// Whatever is not 0 is true.
struct truth_byte {
  using stored = std::uint8_t;
  using wide = bool;
  static bool widen(std::uint8_t byte) { return byte != 0; }
  static std::uint8_t narrow(bool value) { return value ? 1 : 0; }
};

void truth(const task& t) {
  switch (t.op) {
    case SUCL_OP_LOGICAL_AND:
    case SUCL_OP_MIN: return t.run<truth_byte>([](bool a, bool b) { return a && b; });
    case SUCL_OP_LOGICAL_OR:
    case SUCL_OP_MAX: return t.run<truth_byte>([](bool a, bool b) { return a || b; });
    default: return t.run<truth_byte>([](bool a, bool b) { return a != b; });
  }
}

enum class type_class { none, integer, real, complex, located, truth };

struct row {
  std::uint64_t size;
  type_class of;
  void (*reduce)(const task&);
};

template <class T>
using complex_of = plain<std::complex<T>, std::complex<T>>;

constexpr row rows[SUCL_TYPE_COUNT] = {
    {0, type_class::none, nullptr},
    {1, type_class::integer, integer<std::int8_t>},
    {1, type_class::integer, integer<std::uint8_t>},
    {2, type_class::integer, integer<std::int16_t>},
    {2, type_class::integer, integer<std::uint16_t>},
    {4, type_class::integer, integer<std::int32_t>},
    {4, type_class::integer, integer<std::uint32_t>},
    {8, type_class::integer, integer<std::int64_t>},
    {8, type_class::integer, integer<std::uint64_t>},
    {2, type_class::real, real<fp16>},
    {2, type_class::real, real<bf16>},
    {4, type_class::real, real<plain<float, float>>},
    {8, type_class::real, real<plain<double, double>>},
    {8, type_class::complex, arithmetic<complex_of<float>>},
    {16, type_class::complex, arithmetic<complex_of<double>>},
    {sizeof(pair<std::int16_t>), type_class::located, located<std::int16_t>},
    {sizeof(pair<std::int32_t>), type_class::located, located<std::int32_t>},
    {sizeof(pair<std::int64_t>), type_class::located, located<std::int64_t>},
    {sizeof(pair<float>), type_class::located, located<float>},
    {sizeof(pair<double>), type_class::located, located<double>},
    {1, type_class::truth, truth},
    {1, type_class::real, real<fp8_e4m3>},
    {1, type_class::real, real<fp8_e5m2>},
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
    case type_class::none: return false;
    case type_class::integer: return op <= SUCL_OP_BIT_XOR;
    case type_class::real: return op <= SUCL_OP_AVG;
    case type_class::complex: return op == SUCL_OP_SUM || op == SUCL_OP_PROD || op == SUCL_OP_AVG;
    case type_class::located: return op == SUCL_OP_MINLOC || op == SUCL_OP_MAXLOC;
    case type_class::truth:
      return op == SUCL_OP_MIN || op == SUCL_OP_MAX ||
             (op >= SUCL_OP_LOGICAL_AND && op <= SUCL_OP_LOGICAL_XOR);
  }
  return false;
}

void reduce(sucl_type type, sucl_op op, const std::vector<const std::byte*>& inputs,
            std::uint64_t count, int ranks, std::byte* out) {
  find(type)->reduce(task{op, inputs, count, ranks, out});
}

}  // namespace sucl::mock
