// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The loops behind fold.hpp. Each instruction set compiles this file in a source of its own, which
// defines SUCL_FOLD_SET. Everything is in an unnamed namespace and no inline function of a library
// is called: a copy of one that was compiled for a newer processor must never be linked elsewhere.
#include "base/half.hpp"
#include "runtime/exec/fold.hpp"

namespace sucl::core {
namespace {

__extension__ using int128 = __int128;

// How elements lie in memory (`stored`), and what they are combined in (`wide`).
template <class T>
struct plain {
  using stored = T;
  using wide = T;
  static wide widen(T v) { return v; }
  static T narrow(wide v) { return v; }
};

// Integers of avg: the sum is exact.
template <class T, class Wide>
struct exact {
  using stored = T;
  using wide = Wide;
  static wide widen(T v) { return v; }
  static T narrow(wide v) { return static_cast<T>(v); }
};

struct half16 {
  using stored = fp16;
  using wide = float;
  static float widen(fp16 v) { return base::to_float(v); }
  static fp16 narrow(float v) { return base::to_fp16(v); }
};

struct brain16 {
  using stored = bf16;
  using wide = float;
  static float widen(bf16 v) { return base::to_float(v); }
  static bf16 narrow(float v) { return base::to_bf16(v); }
};

template <class T>
struct complex_number {
  T re, im;
};

template <class T>
struct pair {
  T value;
  std::int32_t index;
};

// ---- what is done with two elements

struct add {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a + b);
  }
  template <class T>
  static complex_number<T> of(complex_number<T> a, complex_number<T> b) {
    return {a.re + b.re, a.im + b.im};
  }
};
struct multiply {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a * b);
  }
  template <class T>
  static complex_number<T> of(complex_number<T> a, complex_number<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
};
struct least {
  template <class T>
  static T of(T a, T b) {
    return b < a ? b : a;
  }
};
struct greatest {
  template <class T>
  static T of(T a, T b) {
    return a < b ? b : a;
  }
};
struct both {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>((a != 0) & (b != 0));
  }
};
struct either {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>((a | b) != 0);
  }
};
struct one_of_two {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>((a != 0) ^ (b != 0));
  }
};
struct bits_and {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct bits_or {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct bits_xor {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct least_of_pairs {
  template <class T>
  static pair<T> of(pair<T> a, pair<T> b) {
    if (b.value < a.value) return b;
    if (a.value < b.value) return a;
    return b.index < a.index ? b : a;
  }
};
struct greatest_of_pairs {
  template <class T>
  static pair<T> of(pair<T> a, pair<T> b) {
    if (a.value < b.value) return b;
    if (b.value < a.value) return a;
    return b.index < a.index ? b : a;
  }
};

// ---- what is done with the result

struct keep_it {
  template <class Element>
  static typename Element::stored of(typename Element::wide v, int) {
    return Element::narrow(v);
  }
};

template <class T>
constexpr bool is_16_bit_float = false;
template <>
constexpr bool is_16_bit_float<half16> = true;
template <>
constexpr bool is_16_bit_float<brain16> = true;
template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<complex_number<T>> = true;

struct divide {
  template <class Element>
  static typename Element::stored of(typename Element::wide v, int divisor) {
    using wide = typename Element::wide;
    if constexpr (is_16_bit_float<Element>) {
      return Element::narrow(base::to_odd_float(static_cast<double>(v) / divisor));
    } else if constexpr (is_complex<wide>) {
      return {v.re / static_cast<decltype(v.re)>(divisor),
              v.im / static_cast<decltype(v.re)>(divisor)};
    } else {
      return Element::narrow(static_cast<wide>(v / static_cast<wide>(divisor)));
    }
  }
};

// Memory of any alignment.
template <class T>
struct [[gnu::packed, gnu::may_alias]] unaligned {
  T value;
};

template <class Element, class Op, class End>
struct loops {
  using stored = typename Element::stored;
  using wide = typename Element::wide;
  using cell = unaligned<stored>;

  static void two(cell* to, const cell* a, const cell* b, std::uint64_t count, int divisor) {
#pragma GCC ivdep
    for (std::uint64_t i = 0; i < count; ++i)
      to[i].value = End::template of<Element>(
          Op::of(Element::widen(a[i].value), Element::widen(b[i].value)), divisor);
  }

  static void three(cell* to, const cell* a, const cell* b, const cell* c, std::uint64_t count,
                    int divisor) {
#pragma GCC ivdep
    for (std::uint64_t i = 0; i < count; ++i)
      to[i].value = End::template of<Element>(
          Op::of(Op::of(Element::widen(a[i].value), Element::widen(b[i].value)),
                 Element::widen(c[i].value)),
          divisor);
  }

  // Any number of sources, in blocks that stay in the first cache.
  static void many(cell* to, const void* const* from, std::size_t sources, std::uint64_t count,
                   int divisor) {
    constexpr std::uint64_t block = 4096 / sizeof(wide);
    wide sum[block];
    for (std::uint64_t begin = 0; begin < count; begin += block) {
      const std::uint64_t n = count - begin < block ? count - begin : block;
      const cell* first = static_cast<const cell*>(from[0]) + begin;
      for (std::uint64_t i = 0; i < n; ++i) sum[i] = Element::widen(first[i].value);
      for (std::size_t s = 1; s < sources; ++s) {
        const cell* next = static_cast<const cell*>(from[s]) + begin;
        for (std::uint64_t i = 0; i < n; ++i)
          sum[i] = Op::of(sum[i], Element::widen(next[i].value));
      }
      for (std::uint64_t i = 0; i < n; ++i)
        to[begin + i].value = End::template of<Element>(sum[i], divisor);
    }
  }

  static void run(void* to, const void* const* from, std::size_t sources, std::uint64_t count,
                  int divisor) {
    auto* out = static_cast<cell*>(to);
    const auto in = [&](std::size_t s) { return static_cast<const cell*>(from[s]); };
    if (sources == 2) return two(out, in(0), in(1), count, divisor);
    if (sources == 3) return three(out, in(0), in(1), in(2), count, divisor);
    many(out, from, sources, count, divisor);
  }
};

template <class Element, class Op, class End = keep_it>
constexpr fold_function loop = loops<Element, Op, End>::run;

// ---- which loop for which type and op. Signed integers wrap as unsigned ones do.

template <class T, class Unsigned, class Wide>
fold_function for_integer(sucl_op op) {
  using number = plain<Unsigned>;
  switch (op) {
    case SUCL_OP_SUM: return loop<number, add>;
    case SUCL_OP_PROD: return loop<number, multiply>;
    case SUCL_OP_MIN: return loop<plain<T>, least>;
    case SUCL_OP_MAX: return loop<plain<T>, greatest>;
    case SUCL_OP_AVG: return loop<exact<T, Wide>, add, divide>;
    case SUCL_OP_LOGICAL_AND: return loop<number, both>;
    case SUCL_OP_LOGICAL_OR: return loop<number, either>;
    case SUCL_OP_LOGICAL_XOR: return loop<number, one_of_two>;
    case SUCL_OP_BIT_AND: return loop<number, bits_and>;
    case SUCL_OP_BIT_OR: return loop<number, bits_or>;
    case SUCL_OP_BIT_XOR: return loop<number, bits_xor>;
    default: return nullptr;
  }
}

template <class Element>
fold_function for_real(sucl_op op) {
  switch (op) {
    case SUCL_OP_SUM: return loop<Element, add>;
    case SUCL_OP_PROD: return loop<Element, multiply>;
    case SUCL_OP_MIN: return loop<Element, least>;
    case SUCL_OP_MAX: return loop<Element, greatest>;
    case SUCL_OP_AVG: return loop<Element, add, divide>;
    default: return nullptr;
  }
}

template <class T>
fold_function for_complex(sucl_op op) {
  using element = plain<complex_number<T>>;
  switch (op) {
    case SUCL_OP_SUM: return loop<element, add>;
    case SUCL_OP_PROD: return loop<element, multiply>;
    case SUCL_OP_AVG: return loop<element, add, divide>;
    default: return nullptr;
  }
}

template <class T>
fold_function for_pair(sucl_op op) {
  if (op == SUCL_OP_MINLOC) return loop<plain<pair<T>>, least_of_pairs>;
  if (op == SUCL_OP_MAXLOC) return loop<plain<pair<T>>, greatest_of_pairs>;
  return nullptr;
}

fold_function find(sucl_type type, sucl_op op) {
  using std::int16_t, std::int32_t, std::int64_t, std::int8_t;
  using std::uint16_t, std::uint32_t, std::uint64_t, std::uint8_t;
  switch (type) {
    case SUCL_TYPE_INT8: return for_integer<int8_t, uint8_t, int64_t>(op);
    case SUCL_TYPE_UINT8: return for_integer<uint8_t, uint8_t, int64_t>(op);
    case SUCL_TYPE_INT16: return for_integer<int16_t, uint16_t, int64_t>(op);
    case SUCL_TYPE_UINT16: return for_integer<uint16_t, uint16_t, int64_t>(op);
    case SUCL_TYPE_INT32: return for_integer<int32_t, uint32_t, int64_t>(op);
    case SUCL_TYPE_UINT32: return for_integer<uint32_t, uint32_t, int64_t>(op);
    case SUCL_TYPE_INT64: return for_integer<int64_t, uint64_t, int128>(op);
    case SUCL_TYPE_UINT64: return for_integer<uint64_t, uint64_t, int128>(op);
    case SUCL_TYPE_FP16: return for_real<half16>(op);
    case SUCL_TYPE_BF16: return for_real<brain16>(op);
    case SUCL_TYPE_FP32: return for_real<plain<float>>(op);
    case SUCL_TYPE_FP64: return for_real<plain<double>>(op);
    case SUCL_TYPE_COMPLEX_FP32: return for_complex<float>(op);
    case SUCL_TYPE_COMPLEX_FP64: return for_complex<double>(op);
    case SUCL_TYPE_INT16_LOC: return for_pair<int16_t>(op);
    case SUCL_TYPE_INT32_LOC: return for_pair<int32_t>(op);
    case SUCL_TYPE_INT64_LOC: return for_pair<int64_t>(op);
    case SUCL_TYPE_FP32_LOC: return for_pair<float>(op);
    case SUCL_TYPE_FP64_LOC: return for_pair<double>(op);
    default: return nullptr;
  }
}

}  // namespace

fold_function SUCL_FOLD_SET(sucl_type type, sucl_op op) noexcept;
fold_function SUCL_FOLD_SET(sucl_type type, sucl_op op) noexcept { return find(type, op); }

}  // namespace sucl::core
