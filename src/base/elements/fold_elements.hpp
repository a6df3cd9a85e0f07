// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// How elements lie in memory, what reductions do with two of them and with the result, and which
// of that belongs to a type and an op: for processors and devices alike. Included inside the
// namespace of its user, after base/elements/half.hpp, so that each has functions of its own: a
// copy that was compiled for one processor must never be linked elsewhere. Files that include it
// define SUCL_FOLD_ELEMENTS before; elsewhere it is empty.
#ifdef SUCL_FOLD_ELEMENTS
#undef SUCL_FOLD_ELEMENTS

/// How elements lie in memory (`stored`), and what they are combined in (`wide`). Floats of 16 and
/// 8 bits have the NaN of results when they are narrowed.
template <class T>
struct plain {
  using stored = T;
  using wide = T;
  static wide widen(T v) { return v; }
  static T narrow(wide v) { return v; }
};

/// Integers of avg: the sum is exact.
template <class T, class Wide>
struct exact {
  using stored = T;
  using wide = Wide;
  static wide widen(T v) { return static_cast<wide>(v); }
  static T narrow(wide v) { return static_cast<T>(v); }
};

struct half16 {
  using stored = fp16;
  using wide = float;
  static float widen(fp16 v) { return base::to_float(v); }
  static fp16 narrow(float v) { return base::result_fp16(v); }
};

struct brain16 {
  using stored = bf16;
  using wide = float;
  static float widen(bf16 v) { return base::to_float(v); }
  static bf16 narrow(float v) { return base::result_bf16(v); }
};

struct small8 {
  using stored = fp8_e4m3;
  using wide = float;
  static float widen(fp8_e4m3 v) { return to_float(v); }
  static fp8_e4m3 narrow(float v) { return base::result_fp8_e4m3(v); }
};

struct wide8 {
  using stored = fp8_e5m2;
  using wide = float;
  static float widen(fp8_e5m2 v) { return to_float(v); }
  static fp8_e5m2 narrow(float v) { return base::result_fp8_e5m2(v); }
};

/// A bool, whose byte may have any value.
struct truth {
  using stored = std::uint8_t;
  using wide = std::uint8_t;
  static wide widen(stored v) { return static_cast<wide>(v != 0); }
  static stored narrow(wide v) { return v; }
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

// ---- floats as bits. NaN and the order of zeros are decided on them: what a compiler assumes of
// NaN, and a processor that takes subnormal numbers for zero, change nothing then. The rules are in
// docs/reference/operations.md.

template <class T>
constexpr bool is_float = false;
template <>
inline constexpr bool is_float<float> = true;
template <>
inline constexpr bool is_float<double> = true;

template <class T>
struct float_bits {
  using type = std::int32_t;
  static constexpr type infinity = 0x7f800000;
};
template <>
struct float_bits<double> {
  using type = std::int64_t;
  static constexpr type infinity = 0x7ff0000000000000;
};

/// All bits but the sign; as a float it is the NaN of all results.
template <class T>
constexpr typename float_bits<T>::type all_but_sign =
    static_cast<typename float_bits<T>::type>(~std::uint64_t{0} >> (65 - 8 * sizeof(T)));

template <class T>
typename float_bits<T>::type bits_of(T v) {
  return __builtin_bit_cast(typename float_bits<T>::type, v);
}

template <class T>
bool is_nan(T v) {
  return (bits_of(v) & all_but_sign<T>) > float_bits<T>::infinity;
}

/// Every NaN as the one of all results.
template <class T>
T one_nan(T v) {
  if constexpr (is_float<T>)
    return __builtin_bit_cast(T, is_nan(v) ? all_but_sign<T> : bits_of(v));
  else
    return v;
}
template <class T>
complex_number<T> one_nan(complex_number<T> v) {
  return {one_nan(v.re), one_nan(v.im)};
}
template <class T>
pair<T> one_nan(pair<T> v) {
  v.value = one_nan(v.value);
  return v;
}

/// What orders values: -0 comes before +0. That of a NaN is of no use.
template <class T>
auto order_of(T v) {
  if constexpr (is_float<T>) {
    const auto bits = bits_of(v);
    return bits ^ ((bits >> (8 * sizeof(T) - 1)) & all_but_sign<T>);
  } else {
    return v;
  }
}

/// IEEE 754-2019 minimum, or maximum: the smaller as integers, unless both are negative.
template <bool Least, class T>
T extreme(T a, T b) {
  const auto x = bits_of(a), y = bits_of(b);
  const auto low = x < y ? x : y, high = x < y ? y : x;
  const auto best = (x & y) < 0 ? (Least ? high : low) : (Least ? low : high);
  const auto size_of_x = x & all_but_sign<T>, size_of_y = y & all_but_sign<T>;
  const auto larger = size_of_x < size_of_y ? size_of_y : size_of_x;
  return __builtin_bit_cast(T, larger > float_bits<T>::infinity ? all_but_sign<T> : best);
}

/// -v by its sign bit.
template <class T>
T negated(T v) {
  return __builtin_bit_cast(T, bits_of(v) ^ ~all_but_sign<T>);
}

// ---- what is done with two elements; each gives the same bits if these are exchanged

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
    // Narrow unsigned integers would be multiplied as int, and overflow.
    if constexpr (sizeof(T) < sizeof(unsigned))
      return static_cast<T>(static_cast<unsigned>(a) * static_cast<unsigned>(b));
    else
      return static_cast<T>(a * b);
  }
  template <class T>
  static complex_number<T> of(complex_number<T> a, complex_number<T> b) {
#ifdef __clang__
#pragma clang fp contract(off)  // every compiler rounds the same way
#endif
    // GCC 12 makes a fused operation of a subtraction beside an addition, whatever its options.
    return {a.re * b.re + negated(a.im * b.im), a.re * b.im + a.im * b.re};
  }
};
struct least {
  template <class T>
  static T of(T a, T b) {
    if constexpr (is_float<T>)
      return extreme<true>(a, b);
    else
      return b < a ? b : a;
  }
};
struct greatest {
  template <class T>
  static T of(T a, T b) {
    if constexpr (is_float<T>)
      return extreme<false>(a, b);
    else
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

/// Where a pair comes: NaN before all other values or after them, the lower of equal ones' indices.
template <bool NanFirst, class T>
auto order_of_value(pair<T> p) {
  if constexpr (is_float<T>)
    return is_nan(p.value) ? all_but_sign<T> ^ -typename float_bits<T>::type{NanFirst}
                           : order_of(p.value);
  else
    return p.value;
}

struct min_of_pairs {
  template <class T>
  static pair<T> of(pair<T> a, pair<T> b) {
    const auto first = order_of_value<true>(a), second = order_of_value<true>(b);
    return second < first || (second == first && b.index < a.index) ? b : a;
  }
};
struct greatest_of_pairs {
  template <class T>
  static pair<T> of(pair<T> a, pair<T> b) {
    const auto first = order_of_value<false>(a), second = order_of_value<false>(b);
    return first < second || (second == first && b.index < a.index) ? b : a;
  }
};

template <class T>
constexpr bool is_narrow_float = false;
template <>
inline constexpr bool is_narrow_float<half16> = true;
template <>
inline constexpr bool is_narrow_float<brain16> = true;
template <>
inline constexpr bool is_narrow_float<small8> = true;
template <>
inline constexpr bool is_narrow_float<wide8> = true;

// ---- what is done with the result. `copies`: the result of one contribution alone is that itself,
// whatever its bits.

struct keep_it {
  static bool copies(int) { return true; }
  template <class Element>
  static typename Element::stored of(typename Element::wide v, int) {
    if constexpr (is_narrow_float<Element>)
      return Element::narrow(v);
    else
      return Element::narrow(one_nan(v));
  }
};
/// Of what has no NaN but that of all results.
struct keep_bits {
  static bool copies(int) { return true; }
  template <class Element>
  static typename Element::stored of(typename Element::wide v, int) {
    return Element::narrow(v);
  }
};

template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<complex_number<T>> = true;

struct divide {
  static bool copies(int divisor) { return divisor == 1; }
  template <class Element>
  static typename Element::stored of(typename Element::wide v, int divisor) {
    using wide = typename Element::wide;
    if constexpr (is_narrow_float<Element>) {
      return Element::narrow(base::to_odd_float(static_cast<double>(v) / divisor));
    } else if constexpr (is_complex<wide>) {
      return one_nan(wide{v.re / static_cast<decltype(v.re)>(divisor),
                          v.im / static_cast<decltype(v.re)>(divisor)});
    } else {
      return Element::narrow(one_nan(static_cast<wide>(v / static_cast<wide>(divisor))));
    }
  }
};

// ---- which of these for which type and op. Signed integers wrap as unsigned ones do. `Visitor`
// has visit<Element, Op, End>() and none().

template <class T, class Unsigned, class Wide, class Visitor>
auto visit_integer(sucl_op op, const Visitor& v) {
  using number = plain<Unsigned>;
  switch (op) {
    case SUCL_OP_SUM: return v.template visit<number, add, keep_it>();
    case SUCL_OP_PROD: return v.template visit<number, multiply, keep_it>();
    case SUCL_OP_MIN: return v.template visit<plain<T>, least, keep_it>();
    case SUCL_OP_MAX: return v.template visit<plain<T>, greatest, keep_it>();
    case SUCL_OP_AVG: return v.template visit<exact<T, Wide>, add, divide>();
    case SUCL_OP_LOGICAL_AND: return v.template visit<number, both, keep_it>();
    case SUCL_OP_LOGICAL_OR: return v.template visit<number, either, keep_it>();
    case SUCL_OP_LOGICAL_XOR: return v.template visit<number, one_of_two, keep_it>();
    case SUCL_OP_BIT_AND: return v.template visit<number, bits_and, keep_it>();
    case SUCL_OP_BIT_OR: return v.template visit<number, bits_or, keep_it>();
    case SUCL_OP_BIT_XOR: return v.template visit<number, bits_xor, keep_it>();
    default: return v.none();
  }
}

template <class Element, class Visitor>
auto visit_real(sucl_op op, const Visitor& v) {
  switch (op) {
    case SUCL_OP_SUM: return v.template visit<Element, add, keep_it>();
    case SUCL_OP_PROD: return v.template visit<Element, multiply, keep_it>();
    case SUCL_OP_MIN: return v.template visit<Element, least, keep_bits>();
    case SUCL_OP_MAX: return v.template visit<Element, greatest, keep_bits>();
    case SUCL_OP_AVG: return v.template visit<Element, add, divide>();
    default: return v.none();
  }
}

template <class T, class Visitor>
auto visit_complex(sucl_op op, const Visitor& v) {
  using element = plain<complex_number<T>>;
  switch (op) {
    case SUCL_OP_SUM: return v.template visit<element, add, keep_it>();
    case SUCL_OP_PROD: return v.template visit<element, multiply, keep_it>();
    case SUCL_OP_AVG: return v.template visit<element, add, divide>();
    default: return v.none();
  }
}

template <class Visitor>
auto visit_truth(sucl_op op, const Visitor& v) {
  switch (op) {
    case SUCL_OP_LOGICAL_AND:
    case SUCL_OP_MIN: return v.template visit<truth, both, keep_it>();
    case SUCL_OP_LOGICAL_OR:
    case SUCL_OP_MAX: return v.template visit<truth, either, keep_it>();
    case SUCL_OP_LOGICAL_XOR: return v.template visit<truth, one_of_two, keep_it>();
    default: return v.none();
  }
}

template <class T, class Visitor>
auto visit_pair(sucl_op op, const Visitor& v) {
  if (op == SUCL_OP_MINLOC) return v.template visit<plain<pair<T>>, min_of_pairs, keep_it>();
  if (op == SUCL_OP_MAXLOC) return v.template visit<plain<pair<T>>, greatest_of_pairs, keep_it>();
  return v.none();
}

/// `Signed128` and `Unsigned128` hold sums of 64-bit integers.
template <class Signed128, class Unsigned128, class Visitor>
auto visit_fold(sucl_type type, sucl_op op, const Visitor& v) {
  using std::int16_t, std::int32_t, std::int64_t, std::int8_t;
  using std::uint16_t, std::uint32_t, std::uint64_t, std::uint8_t;
  switch (type) {
    case SUCL_TYPE_INT8: return visit_integer<int8_t, uint8_t, int64_t>(op, v);
    case SUCL_TYPE_UINT8: return visit_integer<uint8_t, uint8_t, int64_t>(op, v);
    case SUCL_TYPE_INT16: return visit_integer<int16_t, uint16_t, int64_t>(op, v);
    case SUCL_TYPE_UINT16: return visit_integer<uint16_t, uint16_t, int64_t>(op, v);
    case SUCL_TYPE_INT32: return visit_integer<int32_t, uint32_t, int64_t>(op, v);
    case SUCL_TYPE_UINT32: return visit_integer<uint32_t, uint32_t, int64_t>(op, v);
    case SUCL_TYPE_INT64: return visit_integer<int64_t, uint64_t, Signed128>(op, v);
    case SUCL_TYPE_UINT64: return visit_integer<uint64_t, uint64_t, Unsigned128>(op, v);
    case SUCL_TYPE_FP16: return visit_real<half16>(op, v);
    case SUCL_TYPE_BF16: return visit_real<brain16>(op, v);
    case SUCL_TYPE_FP32: return visit_real<plain<float>>(op, v);
    case SUCL_TYPE_FP64: return visit_real<plain<double>>(op, v);
    case SUCL_TYPE_COMPLEX_FP32: return visit_complex<float>(op, v);
    case SUCL_TYPE_COMPLEX_FP64: return visit_complex<double>(op, v);
    case SUCL_TYPE_INT16_LOC: return visit_pair<int16_t>(op, v);
    case SUCL_TYPE_INT32_LOC: return visit_pair<int32_t>(op, v);
    case SUCL_TYPE_INT64_LOC: return visit_pair<int64_t>(op, v);
    case SUCL_TYPE_FP32_LOC: return visit_pair<float>(op, v);
    case SUCL_TYPE_FP64_LOC: return visit_pair<double>(op, v);
    case SUCL_TYPE_BOOL: return visit_truth(op, v);
    case SUCL_TYPE_FP8_E4M3: return visit_real<small8>(op, v);
    case SUCL_TYPE_FP8_E5M2: return visit_real<wide8>(op, v);
    default: return v.none();
  }
}

#endif
