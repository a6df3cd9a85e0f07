// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "types.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace sucl::pmpi {
namespace {

struct row {
  MPI_Datatype native;
  type_facts facts;
};

template <class T>
constexpr type_facts plain(sucl_type as = SUCL_TYPE_BYTES) {
  return {as, sizeof(T), sizeof(T), true, true};
}

template <class T>
constexpr sucl_type integer() {
  constexpr bool is_signed = std::is_signed_v<T>;
  switch (sizeof(T)) {
    case 1: return is_signed ? SUCL_TYPE_INT8 : SUCL_TYPE_UINT8;
    case 2: return is_signed ? SUCL_TYPE_INT16 : SUCL_TYPE_UINT16;
    case 4: return is_signed ? SUCL_TYPE_INT32 : SUCL_TYPE_UINT32;
    default: return is_signed ? SUCL_TYPE_INT64 : SUCL_TYPE_UINT64;
  }
}

template <class T>
row integer_row(MPI_Datatype native) {
  return {native, plain<T>(integer<T>())};
}

// Fortran's types, whose sizes are the library's: 0 where it was built without Fortran.
void add_fortran(std::vector<row>& rows) {
  const auto add = [&](MPI_Datatype native, std::initializer_list<type_facts> kinds) {
    int size = 0;
    if (native == MPI_DATATYPE_NULL || PMPI_Type_size(native, &size) != MPI_SUCCESS) return;
    for (const type_facts& f : kinds)
      if (f.size == static_cast<std::uint64_t>(size)) rows.push_back({native, f});
  };
  for (MPI_Datatype native : {MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8})
    add(native, {plain<std::int8_t>(SUCL_TYPE_INT8), plain<std::int16_t>(SUCL_TYPE_INT16),
                 plain<std::int32_t>(SUCL_TYPE_INT32), plain<std::int64_t>(SUCL_TYPE_INT64)});
  for (MPI_Datatype native : {MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8})
    add(native, {plain<float>(SUCL_TYPE_FP32), plain<double>(SUCL_TYPE_FP64)});
  for (MPI_Datatype native : {MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_COMPLEX8, MPI_COMPLEX16})
    add(native,
        {plain<float[2]>(SUCL_TYPE_COMPLEX_FP32), plain<double[2]>(SUCL_TYPE_COMPLEX_FP64)});
  add(MPI_2INTEGER, {plain<std::int32_t[2]>(SUCL_TYPE_INT32_LOC)});
  for (MPI_Datatype native : {MPI_CHARACTER, MPI_LOGICAL})
    add(native, {plain<char>(), plain<std::int32_t>(), plain<std::int64_t>()});
}

std::vector<row> make_rows() {
  std::vector<row> rows{
      {MPI_FLOAT, plain<float>(SUCL_TYPE_FP32)},
      {MPI_DOUBLE, plain<double>(SUCL_TYPE_FP64)},
      integer_row<int>(MPI_INT),
      integer_row<long>(MPI_LONG),
      integer_row<unsigned>(MPI_UNSIGNED),
      integer_row<unsigned long>(MPI_UNSIGNED_LONG),
      integer_row<long long>(MPI_LONG_LONG),
      integer_row<unsigned long long>(MPI_UNSIGNED_LONG_LONG),
      integer_row<signed char>(MPI_SIGNED_CHAR),
      integer_row<unsigned char>(MPI_UNSIGNED_CHAR),
      integer_row<short>(MPI_SHORT),
      integer_row<unsigned short>(MPI_UNSIGNED_SHORT),
      integer_row<std::int8_t>(MPI_INT8_T),
      integer_row<std::uint8_t>(MPI_UINT8_T),
      integer_row<std::int16_t>(MPI_INT16_T),
      integer_row<std::uint16_t>(MPI_UINT16_T),
      integer_row<std::int32_t>(MPI_INT32_T),
      integer_row<std::uint32_t>(MPI_UINT32_T),
      integer_row<std::int64_t>(MPI_INT64_T),
      integer_row<std::uint64_t>(MPI_UINT64_T),
      integer_row<MPI_Aint>(MPI_AINT),
      integer_row<MPI_Offset>(MPI_OFFSET),
      integer_row<MPI_Count>(MPI_COUNT),
      {MPI_C_FLOAT_COMPLEX, plain<float[2]>(SUCL_TYPE_COMPLEX_FP32)},
      {MPI_C_DOUBLE_COMPLEX, plain<double[2]>(SUCL_TYPE_COMPLEX_FP64)},
      {MPI_2INT, plain<int[2]>(SUCL_TYPE_INT32_LOC)},
      {MPI_FLOAT_INT, plain<int[2]>(SUCL_TYPE_FP32_LOC)},
      // Moved, not reduced: characters have no ops, bytes and booleans have fewer than integers.
      {MPI_CHAR, plain<char>()},
      {MPI_BYTE, plain<char>()},
      {MPI_PACKED, plain<char>()},
      {MPI_WCHAR, plain<wchar_t>()},
      {MPI_C_BOOL, plain<bool>()},
      {MPI_LONG_DOUBLE, plain<long double>()},
  };
  // Data and gaps: reduced as they are, packed when they are moved.
  rows.push_back({MPI_SHORT_INT, {SUCL_TYPE_INT16_LOC, 6, 8, false, true}});
  rows.push_back({MPI_LONG_INT, {SUCL_TYPE_INT64_LOC, 12, 16, false, true}});
  rows.push_back({MPI_DOUBLE_INT, {SUCL_TYPE_FP64_LOC, 12, 16, false, true}});
  add_fortran(rows);
  // Where two names have one handle the first stands.
  std::stable_sort(rows.begin(), rows.end(),
                   [](const row& a, const row& b) { return a.native < b.native; });
  rows.erase(std::unique(rows.begin(), rows.end(),
                         [](const row& a, const row& b) { return a.native == b.native; }),
             rows.end());
  return rows;
}

// A contiguous run or a copy of a type is as dense as that type.
type_facts derived(MPI_Datatype type) {
  type_facts facts;
  int size = 0;
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_size(type, &size);
  PMPI_Type_get_extent(type, &lower, &extent);
  facts.size = static_cast<std::uint64_t>(std::max(size, 0));
  facts.extent = extent;
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = 0;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  if ((combiner == MPI_COMBINER_CONTIGUOUS || combiner == MPI_COMBINER_DUP) && integers <= 1 &&
      types == 1) {
    int count = 0;
    MPI_Aint none = 0;
    MPI_Datatype inner = MPI_DATATYPE_NULL;
    PMPI_Type_get_contents(type, integers, addresses, types, &count, &none, &inner);
    facts.dense = facts_of(inner).dense;
    PMPI_Type_get_envelope(inner, &integers, &addresses, &types, &combiner);
    if (combiner != MPI_COMBINER_NAMED) PMPI_Type_free(&inner);
  }
  return facts;
}

}  // namespace

type_facts facts_of(MPI_Datatype type) {
  static const std::vector<row> rows = make_rows();
  const auto found =
      std::lower_bound(rows.begin(), rows.end(), type,
                       [](const row& r, MPI_Datatype wanted) { return r.native < wanted; });
  if (found != rows.end() && found->native == type) return found->facts;
  return derived(type);
}

sucl_op op_of(MPI_Op op) {
  static const std::array<std::pair<MPI_Op, sucl_op>, 12> rows{{
      {MPI_SUM, SUCL_OP_SUM},
      {MPI_PROD, SUCL_OP_PROD},
      {MPI_MIN, SUCL_OP_MIN},
      {MPI_MAX, SUCL_OP_MAX},
      {MPI_LAND, SUCL_OP_LOGICAL_AND},
      {MPI_LOR, SUCL_OP_LOGICAL_OR},
      {MPI_LXOR, SUCL_OP_LOGICAL_XOR},
      {MPI_BAND, SUCL_OP_BIT_AND},
      {MPI_BOR, SUCL_OP_BIT_OR},
      {MPI_BXOR, SUCL_OP_BIT_XOR},
      {MPI_MINLOC, SUCL_OP_MINLOC},
      {MPI_MAXLOC, SUCL_OP_MAXLOC},
  }};
  for (const auto& [native, ours] : rows)
    if (native == op) return ours;
  return SUCL_OP_NONE;
}

}  // namespace sucl::pmpi
