// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The element types of the suite: every type that SuCL reduces, and some that it only moves.
#pragma once

#include <sucl/types.hpp>

#include <cstddef>
#include <cstdint>

namespace sucl::conformance {

/// Elements that only move, of sizes that no type of MPI has.
template <std::size_t Size>
struct blob {
  std::byte bytes[Size];
};
struct record {
  double weight;
  std::int32_t id;
  char tag[12];
};
static_assert(sizeof(record) == 24);

struct element_row {
  const char* name;
  type t;
  std::size_t size;
  bool reducible;
};

// X(index, name, C++ type); the names are arguments of the program. In groups that compile apart.
#define SUCL_CONFORMANCE_SMALL(X) \
  X(0, "int8", std::int8_t)       \
  X(1, "uint8", std::uint8_t)     \
  X(2, "int16", std::int16_t)     \
  X(3, "uint16", std::uint16_t)
#define SUCL_CONFORMANCE_INTEGERS(X) \
  X(4, "int32", std::int32_t)        \
  X(5, "uint32", std::uint32_t)      \
  X(6, "int64", std::int64_t)        \
  X(7, "uint64", std::uint64_t)
#define SUCL_CONFORMANCE_REALS(X) \
  X(8, "fp16", ::sucl::fp16)      \
  X(9, "bf16", ::sucl::bf16)      \
  X(10, "fp32", float)            \
  X(11, "fp64", double)
#define SUCL_CONFORMANCE_PAIRS(X)             \
  X(12, "complex_fp32", std::complex<float>)  \
  X(13, "complex_fp64", std::complex<double>) \
  X(14, "int16_loc", loc<std::int16_t>)       \
  X(15, "int32_loc", loc<std::int32_t>)       \
  X(16, "int64_loc", loc<std::int64_t>)       \
  X(17, "fp32_loc", loc<float>)               \
  X(18, "fp64_loc", loc<double>)
#define SUCL_CONFORMANCE_OPAQUE(X) \
  X(19, "byte", std::byte)         \
  X(20, "bool", bool)              \
  X(21, "bytes3", blob<3>)         \
  X(22, "bytes12", blob<12>)       \
  X(23, "record24", record)

#define SUCL_CONFORMANCE_TINY(X)      \
  X(24, "fp8_e4m3", ::sucl::fp8_e4m3) \
  X(25, "fp8_e5m2", ::sucl::fp8_e5m2)

#define SUCL_CONFORMANCE_ROW(index, name, T) \
  {name, type_of_v<T>, sizeof(T), type_of_v<T> != type::bytes},
inline constexpr element_row elements[] = {
    SUCL_CONFORMANCE_SMALL(SUCL_CONFORMANCE_ROW)     //
    SUCL_CONFORMANCE_INTEGERS(SUCL_CONFORMANCE_ROW)  //
    SUCL_CONFORMANCE_REALS(SUCL_CONFORMANCE_ROW)     //
    SUCL_CONFORMANCE_PAIRS(SUCL_CONFORMANCE_ROW)     //
    SUCL_CONFORMANCE_OPAQUE(SUCL_CONFORMANCE_ROW)    //
    SUCL_CONFORMANCE_TINY(SUCL_CONFORMANCE_ROW)      //
};
#undef SUCL_CONFORMANCE_ROW

/// Whether the suite compiles the call for buffers: every kind for some types, some kinds for every
/// type.
constexpr bool in_buffers(kind k, int element) {
  constexpr int some[] = {4, 8, 11, 17, 22};
  for (const int e : some)
    if (e == element) return true;
  return k == kind::allreduce || k == kind::broadcast || k == kind::allgather ||
         k == kind::sendrecv;
}

}  // namespace sucl::conformance
