// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Kinds of operation, reduction operators and element types. No SYCL needed.
#pragma once

#include <sucl/abi/backend.h>
#include <sucl/export.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace sucl {

/// Numbers of elements, or displacements in elements: one for each rank.
using counts = std::vector<std::size_t>;

/// Instead of a source or destination rank: there is none. As MPI_PROC_NULL.
inline constexpr int no_rank = -1;

/// Kinds of operation; the numbers are those of sucl_kind.
enum class kind : std::int32_t {
  barrier = SUCL_KIND_BARRIER,
  broadcast = SUCL_KIND_BROADCAST,
  reduce = SUCL_KIND_REDUCE,
  allreduce = SUCL_KIND_ALLREDUCE,
  reduce_scatter = SUCL_KIND_REDUCE_SCATTER,
  reduce_scatter_block = SUCL_KIND_REDUCE_SCATTER_BLOCK,
  allgather = SUCL_KIND_ALLGATHER,
  allgatherv = SUCL_KIND_ALLGATHERV,
  alltoall = SUCL_KIND_ALLTOALL,
  alltoallv = SUCL_KIND_ALLTOALLV,
  gather = SUCL_KIND_GATHER,
  gatherv = SUCL_KIND_GATHERV,
  scatter = SUCL_KIND_SCATTER,
  scatterv = SUCL_KIND_SCATTERV,
  scan = SUCL_KIND_SCAN,
  exscan = SUCL_KIND_EXSCAN,
  send = SUCL_KIND_SEND,
  recv = SUCL_KIND_RECV,
  sendrecv = SUCL_KIND_SENDRECV,
  group = SUCL_KIND_GROUP
};

/// Reduction operators; the numbers are those of sucl_op. Which operator is defined for which
/// element type is in defined(). `avg` is the sum divided by the number of ranks: for integers the
/// exact sum, rounded toward zero; for floats of 16 and 8 bits the sum is kept in fp32 and rounded
/// once. docs/reference/operations.md says what every op does with NaN, zeros and overflow.
enum class op : std::int32_t {
  none = SUCL_OP_NONE,
  sum = SUCL_OP_SUM,
  prod = SUCL_OP_PROD,
  min = SUCL_OP_MIN,
  max = SUCL_OP_MAX,
  avg = SUCL_OP_AVG,
  logical_and = SUCL_OP_LOGICAL_AND,
  logical_or = SUCL_OP_LOGICAL_OR,
  logical_xor = SUCL_OP_LOGICAL_XOR,
  bit_and = SUCL_OP_BIT_AND,
  bit_or = SUCL_OP_BIT_OR,
  bit_xor = SUCL_OP_BIT_XOR,
  minloc = SUCL_OP_MINLOC,
  maxloc = SUCL_OP_MAXLOC
};

/// Element types; the numbers are those of sucl_type.
enum class type : std::int32_t {
  bytes = SUCL_TYPE_BYTES,
  int8 = SUCL_TYPE_INT8,
  uint8 = SUCL_TYPE_UINT8,
  int16 = SUCL_TYPE_INT16,
  uint16 = SUCL_TYPE_UINT16,
  int32 = SUCL_TYPE_INT32,
  uint32 = SUCL_TYPE_UINT32,
  int64 = SUCL_TYPE_INT64,
  uint64 = SUCL_TYPE_UINT64,
  fp16 = SUCL_TYPE_FP16,
  bf16 = SUCL_TYPE_BF16,
  fp32 = SUCL_TYPE_FP32,
  fp64 = SUCL_TYPE_FP64,
  complex_fp32 = SUCL_TYPE_COMPLEX_FP32,
  complex_fp64 = SUCL_TYPE_COMPLEX_FP64,
  int16_loc = SUCL_TYPE_INT16_LOC,
  int32_loc = SUCL_TYPE_INT32_LOC,
  int64_loc = SUCL_TYPE_INT64_LOC,
  fp32_loc = SUCL_TYPE_FP32_LOC,
  fp64_loc = SUCL_TYPE_FP64_LOC,
  boolean = SUCL_TYPE_BOOL,  ///< "bool": any value but 0 is true, results are 0 or 1
  fp8_e4m3 = SUCL_TYPE_FP8_E4M3,
  fp8_e5m2 = SUCL_TYPE_FP8_E5M2
};

/// Storage of an IEEE binary16 number for programs without sycl::half. No arithmetic.
struct fp16 {
  std::uint16_t bits;
};

/// Storage of a bfloat16 number for programs without a SYCL bfloat16. No arithmetic.
struct bf16 {
  std::uint16_t bits;
};

/// An OCP e4m3 number: from 2^-9 to 448, no infinities; what is too large becomes NaN. As PyTorch's
/// float8_e4m3fn. No arithmetic; convert with to_float() and to_fp8_e4m3() of <sucl/fp8.hpp>.
struct fp8_e4m3 {
  std::uint8_t bits;
};

/// An OCP e5m2 number: from 2^-16 to 57344; what is too large becomes infinity. As PyTorch's
/// float8_e5m2.
struct fp8_e5m2 {
  std::uint8_t bits;
};

/// A value with an index, for op::minloc and op::maxloc; laid out as MPI's pair types.
template <class T>
struct loc {
  T value;
  std::int32_t index;
};

/// Maps a C++ element type to its type. Any trivially copyable type that has no entry of its own
/// is sent as bytes: it can be moved, not reduced. Specialise it for own 16 or 8-bit float classes.
template <class T, class Enable = void>
struct type_of {
  static_assert(std::is_trivially_copyable_v<T>,
                "SuCL moves elements byte by byte: the element type must be trivially copyable");
  static constexpr type value = [] {
    if constexpr (std::is_same_v<T, bool>) {
      static_assert(sizeof(bool) == 1, "SuCL's bool has one byte");
      return type::boolean;
    } else if constexpr (std::is_same_v<T, std::byte>) {
      return type::bytes;
    } else if constexpr (std::is_integral_v<T>) {
      constexpr bool is_signed = std::is_signed_v<T>;
      if constexpr (sizeof(T) == 1) return is_signed ? type::int8 : type::uint8;
      if constexpr (sizeof(T) == 2) return is_signed ? type::int16 : type::uint16;
      if constexpr (sizeof(T) == 4) return is_signed ? type::int32 : type::uint32;
      if constexpr (sizeof(T) == 8) return is_signed ? type::int64 : type::uint64;
      return type::bytes;
    } else {
      return type::bytes;
    }
  }();
};

/// @cond internal
#define SUCL_TYPE_OF(CppType, name)           \
  template <>                                 \
  struct type_of<CppType> {                   \
    static constexpr type value = type::name; \
  };
SUCL_TYPE_OF(float, fp32)
SUCL_TYPE_OF(double, fp64)
SUCL_TYPE_OF(fp16, fp16)
SUCL_TYPE_OF(bf16, bf16)
SUCL_TYPE_OF(std::complex<float>, complex_fp32)
SUCL_TYPE_OF(std::complex<double>, complex_fp64)
SUCL_TYPE_OF(fp8_e4m3, fp8_e4m3)
SUCL_TYPE_OF(fp8_e5m2, fp8_e5m2)
SUCL_TYPE_OF(loc<std::int16_t>, int16_loc)
SUCL_TYPE_OF(loc<std::int32_t>, int32_loc)
SUCL_TYPE_OF(loc<std::int64_t>, int64_loc)
SUCL_TYPE_OF(loc<float>, fp32_loc)
SUCL_TYPE_OF(loc<double>, fp64_loc)
/// @endcond

/// The type of T, const or not.
template <class T>
inline constexpr type type_of_v = type_of<std::remove_cv_t<T>>::value;

[[nodiscard]] SUCL_CORE_API const char* name(
    kind k) noexcept;  ///< as in "reduce_scatter"; "unknown" if it is
[[nodiscard]] SUCL_CORE_API const char* name(op o) noexcept;    ///< as in "logical_and"
[[nodiscard]] SUCL_CORE_API const char* name(type t) noexcept;  ///< as in "complex_fp32"

/// Bytes of one element; 0 for type::bytes, whose elements have any size.
[[nodiscard]] SUCL_CORE_API std::size_t size_of(type t) noexcept;

/// Whether `o` is defined for `t`: sum, prod and avg for all numbers; min and max for all but
/// complex ones; logical and bitwise for integers; logical, min and max for bool; minloc and maxloc
/// for the pair types.
[[nodiscard]] SUCL_CORE_API bool defined(op o, type t) noexcept;

/// Whether operations of this kind reduce, that is, take an op.
[[nodiscard]] SUCL_CORE_API bool reduces(kind k) noexcept;

/// Whether operations of this kind have a root.
[[nodiscard]] SUCL_CORE_API bool rooted(kind k) noexcept;

}  // namespace sucl
