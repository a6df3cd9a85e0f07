// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What every operation means, written as plainly as possible: which elements a rank contributes,
/// which it gets, and their values. Used on both sides of the staging under test.
#pragma once

#include "support/op_rule.hpp"

#include <sucl/types.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <vector>

namespace sucl::test {

__extension__ using int128 = __int128;
__extension__ using uint128 = unsigned __int128;
using bytes = std::vector<unsigned char>;

/// A run of elements in send or recv.
struct block {
  std::uint64_t first;
  std::uint64_t count;
};

inline bool in_place(const sucl_operation& op) { return (op.flags & SUCL_FLAG_IN_PLACE) != 0; }

inline std::vector<block> listed(const std::uint64_t* counts, const std::uint64_t* displs, int p) {
  std::vector<block> result;
  for (int i = 0; i < p; ++i) result.push_back({displs[i], counts[i]});
  return result;
}

/// What rank r contributes, from recv if in place, else from send.
inline std::vector<block> input_blocks(const sucl_operation& op, int r, int p) {
  const auto ranks = static_cast<std::uint64_t>(p);
  const auto me = static_cast<std::uint64_t>(r);
  const bool inside = in_place(op);
  const bool root = op.root == r;
  switch (op.kind) {
    case SUCL_KIND_BARRIER: return {};
    case SUCL_KIND_BROADCAST:
      return root ? std::vector<block>{{0, op.count}} : std::vector<block>{};
    case SUCL_KIND_REDUCE_SCATTER: {
      std::uint64_t sum = 0;
      for (int i = 0; i < p; ++i) sum += op.recv_counts[i];
      return {{0, sum}};
    }
    case SUCL_KIND_REDUCE_SCATTER_BLOCK:
    case SUCL_KIND_ALLTOALL: return {{0, ranks * op.count}};
    case SUCL_KIND_ALLGATHER: return {{inside ? me * op.count : 0, op.count}};
    case SUCL_KIND_ALLGATHERV: return {{inside ? op.recv_displs[r] : 0, op.recv_counts[r]}};
    case SUCL_KIND_ALLTOALLV:
      return inside ? listed(op.recv_counts, op.recv_displs, p)
                    : listed(op.send_counts, op.send_displs, p);
    case SUCL_KIND_GATHER: return {{inside && root ? me * op.count : 0, op.count}};
    case SUCL_KIND_GATHERV: return {{inside && root ? op.recv_displs[r] : 0, op.count}};
    case SUCL_KIND_SCATTER:
      return root ? std::vector<block>{{0, ranks * op.count}} : std::vector<block>{};
    case SUCL_KIND_SCATTERV:
      return root ? listed(op.send_counts, op.send_displs, p) : std::vector<block>{};
    default: return {{0, op.count}};
  }
}

/// What rank r gets, in recv.
inline std::vector<block> output_blocks(const sucl_operation& op, int r, int p) {
  const auto ranks = static_cast<std::uint64_t>(p);
  const bool root = op.root == r;
  const std::vector<block> nothing;
  const std::vector<block> one{{0, op.count}};
  const std::vector<block> all{{0, ranks * op.count}};
  switch (op.kind) {
    case SUCL_KIND_BARRIER: return nothing;
    case SUCL_KIND_BROADCAST: return root ? nothing : one;
    case SUCL_KIND_REDUCE: return root ? one : nothing;
    case SUCL_KIND_EXSCAN: return r == 0 ? nothing : one;
    case SUCL_KIND_REDUCE_SCATTER: return {{0, op.recv_counts[r]}};
    case SUCL_KIND_ALLGATHER:
    case SUCL_KIND_ALLTOALL: return all;
    case SUCL_KIND_ALLGATHERV:
    case SUCL_KIND_ALLTOALLV: return listed(op.recv_counts, op.recv_displs, p);
    case SUCL_KIND_GATHER: return root ? all : nothing;
    case SUCL_KIND_GATHERV: return root ? listed(op.recv_counts, op.recv_displs, p) : nothing;
    case SUCL_KIND_SCATTER:
    case SUCL_KIND_SCATTERV: return root && in_place(op) ? nothing : one;
    default: return one;
  }
}

/// A 16-bit float with `mantissa` stored bits of its fraction, as a double.
inline double decode(std::uint16_t bits, int mantissa) {
  const int exponent_bits = 15 - mantissa;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << mantissa) - 1);
  double value;
  if (exponent == (1 << exponent_bits) - 1)
    value = fraction ? NAN : INFINITY;
  else if (exponent == 0)
    value = std::ldexp(fraction, 1 - bias - mantissa);
  else
    value = std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
  return bits & 0x8000 ? -value : value;
}

/// The nearest such float, ties to even, by scaling until one unit is 1.
inline std::uint16_t encode(double d, int mantissa) {
  const int exponent_bits = 15 - mantissa;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto infinite = static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << mantissa);
  const auto sign = static_cast<std::uint16_t>(std::signbit(d) ? 0x8000 : 0);
  if (std::isnan(d)) return static_cast<std::uint16_t>(sign | infinite | 1 << (mantissa - 1));
  const double a = std::fabs(d);
  if (std::isinf(a)) return sign | infinite;
  if (a == 0) return sign;
  const int least = 1 - bias;
  const int exponent = std::max(std::ilogb(a), least);
  double units = std::nearbyint(std::ldexp(a, mantissa - exponent));
  // The units of a normal number include the hidden bit, which the exponent field counts too.
  const double code = units + std::ldexp(exponent - least, mantissa);
  return sign | static_cast<std::uint16_t>(std::min(code, static_cast<double>(infinite)));
}

template <class W>
W combine(sucl_op op, W a, W b) {
  switch (op) {
    case SUCL_OP_PROD: return a * b;
    default: return a + b;
  }
}

inline double combine(sucl_op op, double a, double b) {
  if (op == SUCL_OP_MIN) return std::min(a, b);
  if (op == SUCL_OP_MAX) return std::max(a, b);
  return op == SUCL_OP_PROD ? a * b : a + b;
}

inline int128 combine(sucl_op op, int128 a, int128 b) {
  switch (op) {
    case SUCL_OP_PROD:
      return static_cast<int128>(static_cast<uint128>(a) * static_cast<uint128>(b));
    case SUCL_OP_MIN: return std::min(a, b);
    case SUCL_OP_MAX: return std::max(a, b);
    case SUCL_OP_LOGICAL_AND: return a && b;
    case SUCL_OP_LOGICAL_OR: return a || b;
    case SUCL_OP_LOGICAL_XOR: return !a != !b;
    case SUCL_OP_BIT_AND: return a & b;
    case SUCL_OP_BIT_OR: return a | b;
    case SUCL_OP_BIT_XOR: return a ^ b;
    default: return a + b;
  }
}

template <class W, class Get, class Put>
void reduce_with(sucl_op op, const std::vector<const unsigned char*>& from, unsigned char* to,
                 Get get, Put put) {
  W value = get(from[0]);
  for (std::size_t i = 1; i < from.size(); ++i) value = combine(op, value, get(from[i]));
  if (op == SUCL_OP_AVG) value = value / static_cast<W>(static_cast<double>(from.size()));
  put(to, value);
}

template <class W, class T>
void reduce_as(sucl_op op, const std::vector<const unsigned char*>& from, unsigned char* to) {
  const auto get = [](const unsigned char* at) {
    T element;
    std::memcpy(&element, at, sizeof(T));
    return static_cast<W>(element);
  };
  const auto put = [](unsigned char* at, W value) {
    const T element = static_cast<T>(value);
    std::memcpy(at, &element, sizeof(T));
  };
  reduce_with<W>(op, from, to, get, put);
}

template <class T>
void reduce_pairs(sucl_op op, const std::vector<const unsigned char*>& from, unsigned char* to) {
  loc<T> best;
  std::memcpy(&best, from[0], sizeof best);
  for (const unsigned char* at : from) {
    loc<T> other;
    std::memcpy(&other, at, sizeof other);
    const bool better = op == SUCL_OP_MINLOC ? other.value < best.value : other.value > best.value;
    if (better || (other.value == best.value && other.index < best.index)) best = other;
  }
  std::memcpy(to, &best, sizeof best);
}

/// Reduces one element a rank: exactly, then rounded once.
inline void reduce(sucl_type type, sucl_op op, const std::vector<const unsigned char*>& from,
                   unsigned char* to) {
  const auto half = [&](int mantissa) {
    reduce_with<double>(
        op, from, to,
        [=](const unsigned char* at) {
          std::uint16_t bits;
          std::memcpy(&bits, at, 2);
          return decode(bits, mantissa);
        },
        [=](unsigned char* at, double value) {
          const std::uint16_t bits = encode(value, mantissa);
          std::memcpy(at, &bits, 2);
        });
  };
  switch (type) {
    case SUCL_TYPE_INT8: return reduce_as<int128, std::int8_t>(op, from, to);
    case SUCL_TYPE_UINT8: return reduce_as<int128, std::uint8_t>(op, from, to);
    case SUCL_TYPE_INT16: return reduce_as<int128, std::int16_t>(op, from, to);
    case SUCL_TYPE_UINT16: return reduce_as<int128, std::uint16_t>(op, from, to);
    case SUCL_TYPE_INT32: return reduce_as<int128, std::int32_t>(op, from, to);
    case SUCL_TYPE_UINT32: return reduce_as<int128, std::uint32_t>(op, from, to);
    case SUCL_TYPE_INT64: return reduce_as<int128, std::int64_t>(op, from, to);
    case SUCL_TYPE_UINT64: return reduce_as<int128, std::uint64_t>(op, from, to);
    case SUCL_TYPE_FP16: return half(10);
    case SUCL_TYPE_BF16: return half(7);
    case SUCL_TYPE_FP8_E4M3:
    case SUCL_TYPE_FP8_E5M2: {
      const auto f = rule::format_of(static_cast<sucl::type>(type));
      return reduce_with<double>(
          op, from, to, [=](const unsigned char* at) { return f.decode(*at); },
          [=](unsigned char* at, double v) { *at = static_cast<unsigned char>(f.encode(v)); });
    }
    case SUCL_TYPE_BOOL: return reduce_as<int128, std::uint8_t>(op, from, to);
    case SUCL_TYPE_FP32: return reduce_as<double, float>(op, from, to);
    case SUCL_TYPE_FP64: return reduce_as<double, double>(op, from, to);
    case SUCL_TYPE_COMPLEX_FP32:
      return reduce_as<std::complex<double>, std::complex<float>>(op, from, to);
    case SUCL_TYPE_COMPLEX_FP64:
      return reduce_as<std::complex<double>, std::complex<double>>(op, from, to);
    case SUCL_TYPE_INT16_LOC: return reduce_pairs<std::int16_t>(op, from, to);
    case SUCL_TYPE_INT32_LOC: return reduce_pairs<std::int32_t>(op, from, to);
    case SUCL_TYPE_INT64_LOC: return reduce_pairs<std::int64_t>(op, from, to);
    case SUCL_TYPE_FP32_LOC: return reduce_pairs<float>(op, from, to);
    case SUCL_TYPE_FP64_LOC: return reduce_pairs<double>(op, from, to);
    default: return;
  }
}

inline bytes reduce_all(const sucl_operation& op, const std::vector<const bytes*>& in) {
  const std::uint64_t size = op.element_size;
  bytes out(in[0]->size());
  std::vector<const unsigned char*> at(in.size());
  for (std::uint64_t i = 0; i < out.size(); i += size) {
    for (std::size_t r = 0; r < in.size(); ++r) at[r] = in[r]->data() + i;
    reduce(op.type, op.op, at, out.data() + i);
  }
  return out;
}

/// What each rank gets, dense, from what each contributes, dense. `ops` is one operation a rank.
inline std::vector<bytes> solve(const std::vector<sucl_operation>& ops,
                                const std::vector<bytes>& in) {
  const int p = static_cast<int>(ops.size());
  const sucl_operation& op = ops[0];
  const std::uint64_t size = op.element_size;
  std::vector<bytes> out(ops.size());
  const auto take = [&](int r, const bytes& from, std::uint64_t first, std::uint64_t count) {
    const auto at = from.begin() + static_cast<std::ptrdiff_t>(first * size);
    out[r].insert(out[r].end(), at, at + static_cast<std::ptrdiff_t>(count * size));
  };
  std::vector<const bytes*> all;
  for (const bytes& b : in) all.push_back(&b);
  for (int r = 0; r < p; ++r) {
    const auto me = static_cast<std::uint64_t>(r);
    switch (op.kind) {
      case SUCL_KIND_BROADCAST: out[r] = in[op.root]; break;
      case SUCL_KIND_REDUCE:
      case SUCL_KIND_ALLREDUCE: out[r] = r == 0 ? reduce_all(op, all) : out[0]; break;
      case SUCL_KIND_SCAN: out[r] = reduce_all(op, {all.begin(), all.begin() + r + 1}); break;
      case SUCL_KIND_EXSCAN:
        if (r > 0) out[r] = reduce_all(op, {all.begin(), all.begin() + r});
        break;
      case SUCL_KIND_REDUCE_SCATTER: {
        std::uint64_t start = 0;
        for (int i = 0; i < r; ++i) start += op.recv_counts[i];
        take(r, reduce_all(op, all), start, op.recv_counts[r]);
        break;
      }
      case SUCL_KIND_REDUCE_SCATTER_BLOCK:
        take(r, reduce_all(op, all), me * op.count, op.count);
        break;
      case SUCL_KIND_ALLGATHER:
      case SUCL_KIND_ALLGATHERV:
      case SUCL_KIND_GATHER:
      case SUCL_KIND_GATHERV:
        for (const bytes& b : in) out[r].insert(out[r].end(), b.begin(), b.end());
        break;
      case SUCL_KIND_ALLTOALL:
        for (const bytes& b : in) take(r, b, me * op.count, op.count);
        break;
      case SUCL_KIND_ALLTOALLV:
        for (int s = 0; s < p; ++s) {
          const std::vector<block> sent = input_blocks(ops[s], s, p);
          std::uint64_t start = 0;
          for (int i = 0; i < r; ++i) start += sent[i].count;
          take(r, in[s], start, sent[r].count);
        }
        break;
      case SUCL_KIND_SCATTER: take(r, in[op.root], me * op.count, op.count); break;
      case SUCL_KIND_SCATTERV: {
        std::uint64_t start = 0;
        for (int i = 0; i < r; ++i) start += ops[op.root].send_counts[i];
        take(r, in[op.root], start, ops[op.root].send_counts[r]);
        break;
      }
      default: break;
    }
  }
  return out;
}

}  // namespace sucl::test
