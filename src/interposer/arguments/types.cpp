// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/arguments/types.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace sucl::interposer {
namespace {

struct row {
  MPI_Datatype native;
  type_facts facts;
};

template <class T>
constexpr type_facts plain(sucl_type as = SUCL_TYPE_BYTES, op_group group = op_group::none) {
  return {as, sizeof(T), sizeof(T), true, true, group};
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
row integer_row(MPI_Datatype native, op_group group = op_group::integer) {
  return {native, plain<T>(integer<T>(), group)};
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
    add(native, {plain<std::int8_t>(SUCL_TYPE_INT8, op_group::address),
                 plain<std::int16_t>(SUCL_TYPE_INT16, op_group::address),
                 plain<std::int32_t>(SUCL_TYPE_INT32, op_group::address),
                 plain<std::int64_t>(SUCL_TYPE_INT64, op_group::address)});
  for (MPI_Datatype native : {MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8})
    add(native, {plain<float>(SUCL_TYPE_FP32, op_group::floating),
                 plain<double>(SUCL_TYPE_FP64, op_group::floating)});
  for (MPI_Datatype native : {MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_COMPLEX8, MPI_COMPLEX16})
    add(native, {plain<float[2]>(SUCL_TYPE_COMPLEX_FP32, op_group::complex),
                 plain<double[2]>(SUCL_TYPE_COMPLEX_FP64, op_group::complex)});
  add(MPI_2INTEGER, {plain<std::int32_t[2]>(SUCL_TYPE_INT32_LOC, op_group::pair)});
  for (MPI_Datatype native : {MPI_CHARACTER, MPI_LOGICAL})
    add(native, {plain<char>(), plain<std::int32_t>(), plain<std::int64_t>()});
}

std::vector<row> make_rows() {
  std::vector<row> rows{
      {MPI_FLOAT, plain<float>(SUCL_TYPE_FP32, op_group::floating)},
      {MPI_DOUBLE, plain<double>(SUCL_TYPE_FP64, op_group::floating)},
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
      integer_row<MPI_Aint>(MPI_AINT, op_group::address),
      integer_row<MPI_Offset>(MPI_OFFSET, op_group::address),
      integer_row<MPI_Count>(MPI_COUNT, op_group::address),
      {MPI_C_FLOAT_COMPLEX, plain<float[2]>(SUCL_TYPE_COMPLEX_FP32, op_group::complex)},
      {MPI_C_DOUBLE_COMPLEX, plain<double[2]>(SUCL_TYPE_COMPLEX_FP64, op_group::complex)},
      {MPI_2INT, plain<int[2]>(SUCL_TYPE_INT32_LOC, op_group::pair)},
      {MPI_FLOAT_INT, plain<int[2]>(SUCL_TYPE_FP32_LOC, op_group::pair)},
      {MPI_C_BOOL, plain<bool>(SUCL_TYPE_BOOL, op_group::logical)},
      // Moved, not reduced: characters have no ops, bytes have fewer than integers.
      {MPI_CHAR, plain<char>()},
      {MPI_BYTE, plain<char>()},
      {MPI_PACKED, plain<char>()},
      {MPI_WCHAR, plain<wchar_t>()},
      {MPI_LONG_DOUBLE, plain<long double>()},
  };
  // Data and gaps: reduced as they are, packed when they are moved.
  rows.push_back({MPI_SHORT_INT, {SUCL_TYPE_INT16_LOC, 6, 8, false, true, op_group::pair}});
  rows.push_back({MPI_LONG_INT, {SUCL_TYPE_INT64_LOC, 12, 16, false, true, op_group::pair}});
  rows.push_back({MPI_DOUBLE_INT, {SUCL_TYPE_FP64_LOC, 12, 16, false, true, op_group::pair}});
  add_fortran(rows);
  // Where two names have one handle the first stands.
  std::stable_sort(rows.begin(), rows.end(),
                   [](const row& a, const row& b) { return a.native < b.native; });
  rows.erase(std::unique(rows.begin(), rows.end(),
                         [](const row& a, const row& b) { return a.native == b.native; }),
             rows.end());
  return rows;
}

// For questions that may be wrong: their errors go to the caller alone.
MPI_Comm quiet_comm() {
  static const MPI_Comm comm = [] {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Group self = MPI_GROUP_NULL;
    PMPI_Comm_group(MPI_COMM_SELF, &self);
    PMPI_Comm_create(MPI_COMM_SELF, self, &made);
    PMPI_Group_free(&self);
    PMPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    return made;
  }();
  return comm;
}

// MPI has no function that tells whether a type is committed, but a send to MPI_PROC_NULL checks
// it.
bool is_usable(MPI_Datatype type) {
  static const char nothing = 0;
  return type != MPI_DATATYPE_NULL &&
         PMPI_Send(&nothing, 1, type, MPI_PROC_NULL, 0, quiet_comm()) == MPI_SUCCESS;
}

// How a type was made. A library with functions for large counts has others, which take all types:
// those without refuse types that were made with large counts.
struct recipe {
#if MPI_VERSION >= 4 && !defined(SUCL_MPI_WITHOUT_LARGE_COUNTS)
  explicit recipe(MPI_Datatype type) {
    PMPI_Type_get_envelope_c(type, &integers, &addresses, &large, &types, &combiner);
  }
  MPI_Datatype inner_of(MPI_Datatype type) const {
    int integer = 0;
    MPI_Aint address = 0;
    MPI_Count count = 0;
    MPI_Datatype inner = MPI_DATATYPE_NULL;
    PMPI_Type_get_contents_c(type, integers, addresses, large, types, &integer, &address, &count,
                             &inner);
    return inner;
  }
  MPI_Count integers = 0, addresses = 0, large = 0, types = 0;
#else
  explicit recipe(MPI_Datatype type) {
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  }
  MPI_Datatype inner_of(MPI_Datatype type) const {
    int integer = 0;
    MPI_Aint address = 0;
    MPI_Datatype inner = MPI_DATATYPE_NULL;
    PMPI_Type_get_contents(type, integers, addresses, types, &integer, &address, &inner);
    return inner;
  }
  static constexpr int large = 0;
  int integers = 0, addresses = 0, types = 0;
#endif
  int combiner = MPI_COMBINER_NAMED;

  /// By a call of its own, so that there is a handle to be freed. Fortran's types of a precision
  /// are predefined, though they have no names.
  bool is_made() const {
    return combiner != MPI_COMBINER_NAMED && combiner != MPI_COMBINER_F90_REAL &&
           combiner != MPI_COMBINER_F90_COMPLEX && combiner != MPI_COMBINER_F90_INTEGER;
  }
  bool repeats() const {
    return (combiner == MPI_COMBINER_CONTIGUOUS || combiner == MPI_COMBINER_DUP) && integers <= 1 &&
           addresses <= 1 && large <= 1 && types == 1;
  }
};

// A contiguous run or a copy of a type is as dense as that type.
type_facts derived(MPI_Datatype type) {
  type_facts facts;
  MPI_Count size = 0;
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_size_x(type, &size);
  PMPI_Type_get_extent(type, &lower, &extent);
  facts.size = static_cast<std::uint64_t>(size);
  facts.extent = extent;
  if (const recipe how(type); how.repeats()) {
    MPI_Datatype inner = how.inner_of(type);
    facts.dense = facts_of(inner).dense;
    if (recipe(inner).is_made()) PMPI_Type_free(&inner);
  }
  // More than the library packs at once.
  facts.usable = facts.dense || size <= std::numeric_limits<int>::max();
  return facts;
}

}  // namespace

type_facts facts_of(MPI_Datatype type) {
  static const std::vector<row> rows = make_rows();
  const auto found =
      std::lower_bound(rows.begin(), rows.end(), type,
                       [](const row& r, MPI_Datatype wanted) { return r.native < wanted; });
  if (found != rows.end() && found->native == type) return found->facts;
  if (is_usable(type)) return derived(type);
  type_facts nothing;
  nothing.usable = false;
  return nothing;
}

sucl_op op_of(MPI_Op op, op_group group) {
  struct op_row {
    MPI_Op native;
    sucl_op ours;
    bool address, floating, complex;  // besides integers
  };
  static const std::array<op_row, 12> rows{{
      {MPI_SUM, SUCL_OP_SUM, true, true, true},
      {MPI_PROD, SUCL_OP_PROD, true, true, true},
      {MPI_MIN, SUCL_OP_MIN, true, true, false},
      {MPI_MAX, SUCL_OP_MAX, true, true, false},
      {MPI_LAND, SUCL_OP_LOGICAL_AND, false, false, false},
      {MPI_LOR, SUCL_OP_LOGICAL_OR, false, false, false},
      {MPI_LXOR, SUCL_OP_LOGICAL_XOR, false, false, false},
      {MPI_BAND, SUCL_OP_BIT_AND, true, false, false},
      {MPI_BOR, SUCL_OP_BIT_OR, true, false, false},
      {MPI_BXOR, SUCL_OP_BIT_XOR, true, false, false},
      {MPI_MINLOC, SUCL_OP_MINLOC, false, false, false},
      {MPI_MAXLOC, SUCL_OP_MAXLOC, false, false, false},
  }};
  const bool on_pairs = op == MPI_MINLOC || op == MPI_MAXLOC;
  const bool on_bools = op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR;
  for (const op_row& r : rows) {
    if (r.native != op) continue;
    bool defined = false;
    switch (group) {
      case op_group::integer: defined = !on_pairs; break;
      case op_group::address: defined = r.address; break;
      case op_group::floating: defined = r.floating; break;
      case op_group::complex: defined = r.complex; break;
      case op_group::pair: defined = on_pairs; break;
      case op_group::logical: defined = on_bools; break;
      case op_group::none: break;
    }
    return defined ? r.ours : SUCL_OP_NONE;
  }
  return SUCL_OP_NONE;
}

}  // namespace sucl::interposer
