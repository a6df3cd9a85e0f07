// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "types.hpp"

namespace sucl::mpi_module {
namespace {

// MPI_LONG_INT stands for {int64_t; int32_t}.
static_assert(sizeof(long) == 8 && sizeof(int) == 4 && sizeof(short) == 2);

enum family : unsigned { opaque = 0, integer = 1, real = 2, complex = 4, pair = 8, truth = 16 };

struct type_row {
  MPI_Datatype native;
  unsigned of;
};

const type_row& row(sucl_type type) {
  static const type_row rows[SUCL_TYPE_COUNT] = {
      {MPI_DATATYPE_NULL, opaque},      // bytes
      {MPI_INT8_T, integer},            // int8
      {MPI_UINT8_T, integer},           // uint8
      {MPI_INT16_T, integer},           // int16
      {MPI_UINT16_T, integer},          // uint16
      {MPI_INT32_T, integer},           // int32
      {MPI_UINT32_T, integer},          // uint32
      {MPI_INT64_T, integer},           // int64
      {MPI_UINT64_T, integer},          // uint64
      {MPI_DATATYPE_NULL, opaque},      // fp16
      {MPI_DATATYPE_NULL, opaque},      // bf16
      {MPI_FLOAT, real},                // fp32
      {MPI_DOUBLE, real},               // fp64
      {MPI_C_FLOAT_COMPLEX, complex},   // complex_fp32
      {MPI_C_DOUBLE_COMPLEX, complex},  // complex_fp64
      {MPI_SHORT_INT, pair},            // int16_loc
      {MPI_2INT, pair},                 // int32_loc
      {MPI_LONG_INT, pair},             // int64_loc
      {MPI_FLOAT_INT, pair},            // fp32_loc
      {MPI_DOUBLE_INT, pair},           // fp64_loc
      {MPI_UINT8_T, truth},             // bool
      {MPI_DATATYPE_NULL, opaque},      // fp8_e4m3
      {MPI_DATATYPE_NULL, opaque},      // fp8_e5m2
  };
  return rows[type];
}

struct op_row {
  MPI_Op native;
  unsigned families;
};

const op_row& row_of_op(sucl_op op) {
  static const op_row rows[SUCL_OP_COUNT] = {
      {MPI_OP_NULL, 0},                      // none
      {MPI_SUM, integer | real | complex},   // sum
      {MPI_PROD, integer | real | complex},  // prod
      {MPI_MIN, integer | real | truth},     // min
      {MPI_MAX, integer | real | truth},     // max
      {MPI_OP_NULL, 0},                      // avg
      {MPI_LAND, integer | truth},           // logical_and
      {MPI_LOR, integer | truth},            // logical_or
      {MPI_LXOR, integer | truth},           // logical_xor
      {MPI_BAND, integer},                   // bit_and
      {MPI_BOR, integer},                    // bit_or
      {MPI_BXOR, integer},                   // bit_xor
      {MPI_MINLOC, pair},                    // minloc
      {MPI_MAXLOC, pair},                    // maxloc
  };
  return rows[op];
}

}  // namespace

bool reducible(sucl_op op, sucl_type type) {
  if (op < 0 || op >= SUCL_OP_COUNT || type < 0 || type >= SUCL_TYPE_COUNT) return false;
  return (row_of_op(op).families & row(type).of) != 0;
}

MPI_Op native_op(sucl_op op) { return row_of_op(op).native; }

MPI_Datatype reduced_type(sucl_type type) { return row(type).native; }

int make_block(std::uint64_t bytes, MPI_Datatype* block) {
  *block = MPI_DATATYPE_NULL;
  MPI_Datatype made = MPI_DATATYPE_NULL;
  int code = MPI_SUCCESS;
  if (bytes <= native_limit) {
    code = SUCL_MPI_CALL(Type_contiguous)(static_cast<count_type>(bytes), MPI_BYTE, &made);
  } else {
    // Whole gibibytes and a rest: the only way past 2 GiB where counts have 32 bits.
    constexpr std::uint64_t chunk = std::uint64_t{1} << 30;
    MPI_Datatype chunk_type = MPI_DATATYPE_NULL;
    code = MPI_Type_contiguous(static_cast<int>(chunk), MPI_BYTE, &chunk_type);
    if (code != MPI_SUCCESS) return code;
    int lengths[2] = {static_cast<int>(bytes / chunk), static_cast<int>(bytes % chunk)};
    MPI_Aint displs[2] = {0, static_cast<MPI_Aint>(bytes / chunk * chunk)};
    MPI_Datatype parts[2] = {chunk_type, MPI_BYTE};
    code = MPI_Type_create_struct(2, lengths, displs, parts, &made);
    MPI_Type_free(&chunk_type);
  }
  if (code == MPI_SUCCESS) code = MPI_Type_commit(&made);
  if (code == MPI_SUCCESS) *block = made;
  return code;
}

int block_types::find(std::uint64_t bytes, MPI_Datatype* found) {
  // Sizes that a predefined type moves: cheaper for every library than a derived one.
  switch (bytes) {
    case 1: *found = MPI_BYTE; return MPI_SUCCESS;
    case 2: *found = MPI_UINT16_T; return MPI_SUCCESS;
    case 4: *found = MPI_UINT32_T; return MPI_SUCCESS;
    case 8: *found = MPI_UINT64_T; return MPI_SUCCESS;
    case 16: *found = MPI_C_DOUBLE_COMPLEX; return MPI_SUCCESS;
    default: break;
  }
  for (const entry& e : m_entries) {
    if (e.bytes != bytes) continue;
    *found = e.native;
    return MPI_SUCCESS;
  }
  const int code = make_block(bytes, found);
  if (code == MPI_SUCCESS) m_entries.push_back({bytes, *found});
  return code;
}

void block_types::free_all() {
  for (entry& e : m_entries) MPI_Type_free(&e.native);
  m_entries.clear();
}

}  // namespace sucl::mpi_module
