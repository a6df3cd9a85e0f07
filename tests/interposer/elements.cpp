// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "elements.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

namespace fuzz {
namespace {

MPI_Datatype committed(MPI_Datatype made) {
  MPI_Type_commit(&made);
  return made;
}

MPI_Datatype resized(MPI_Datatype of, MPI_Aint extent) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(of, 0, extent, &made);
  MPI_Type_free(&of);
  return committed(made);
}

MPI_Datatype run_of(int n, MPI_Datatype of) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(n, of, &made);
  return committed(made);
}

MPI_Datatype strided() {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_vector(3, 1, 2, MPI_SHORT, &made);
  return resized(made, 16);
}

// Fields in another order than in memory, and a gap at the end.
MPI_Datatype record() {
  const std::array<int, 3> lengths{1, 2, 1};
  const std::array<MPI_Aint, 3> displs{8, 0, 4};
  const std::array<MPI_Datatype, 3> types{MPI_DOUBLE, MPI_CHAR, MPI_FLOAT};
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(3, lengths.data(), displs.data(), types.data(), &made);
  return resized(made, 24);
}

MPI_Datatype indexed() {
  const std::array<int, 3> lengths{2, 1, 3};
  const std::array<int, 3> displs{7, 0, 3};
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_indexed(3, lengths.data(), displs.data(), MPI_INT, &made);
  return resized(made, 40);
}

MPI_Datatype corner() {
  const std::array<int, 2> sizes{4, 3}, part{2, 2}, first{1, 1};
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_create_subarray(2, sizes.data(), part.data(), first.data(), MPI_ORDER_C, MPI_FLOAT,
                           &made);
  return committed(made);
}

}  // namespace

const std::vector<element>& all_elements() {
  static const std::vector<element> all{
      {"int", MPI_INT, 4, content::integer, 4},
      {"unsigned char", MPI_UNSIGNED_CHAR, 1, content::integer, 1},
      {"short", MPI_SHORT, 2, content::integer, 2},
      {"long", MPI_LONG, sizeof(long), content::integer, sizeof(long)},
      {"uint16", MPI_UINT16_T, 2, content::integer, 2},
      {"int8", MPI_INT8_T, 1, content::integer, 1},
      {"uint64", MPI_UINT64_T, 8, content::integer, 8},
      {"float", MPI_FLOAT, 4, content::floating, 4},
      {"double", MPI_DOUBLE, 8, content::floating, 8},
      {"long double", MPI_LONG_DOUBLE, sizeof(long double), content::floating, sizeof(long double),
       10, sizeof(long double)},
      {"float complex", MPI_C_FLOAT_COMPLEX, 8, content::complex, 4},
      {"complex", MPI_C_DOUBLE_COMPLEX, 16, content::complex, 8},
      {"double_int", MPI_DOUBLE_INT, 16, content::pair, 8, 12, 16},
      {"float_int", MPI_FLOAT_INT, 8, content::pair, 4},
      {"2int", MPI_2INT, 8, content::pair, 4},
      {"long_int", MPI_LONG_INT, 16, content::pair, 8, 12, 16},
      {"short_int", MPI_SHORT_INT, 8, content::pair, 2, 2, 4},
      {"bool", MPI_C_BOOL, 1, content::logical, 1},
      {"map", run_of(2, MPI_UNSIGNED), 8, content::affine, 4, 0, 0, true},
      {"char", MPI_CHAR, 1, content::bytes},
      {"byte", MPI_BYTE, 1, content::bytes},
      {"three ints", run_of(3, MPI_INT), 12, content::bytes, 0, 0, 0, true, 3},
      {"shorts with gaps", strided(), 16, content::bytes, 0, 0, 0, true},
      {"record", record(), 24, content::bytes, 0, 0, 0, true},
      {"indexed ints", indexed(), 40, content::bytes, 0, 0, 0, true},
      {"part of a matrix", corner(), 48, content::bytes, 0, 0, 0, true}};
  return all;
}

std::size_t reducible_elements() {
  const auto& all = all_elements();
  return std::size_t(std::find_if(all.begin(), all.end(),
                                  [](const element& e) { return e.holds == content::bytes; }) -
                     all.begin());
}

namespace {

void write_number(char* at, std::size_t bytes, bool floats, std::uint64_t x) {
  if (!floats) return void(std::memcpy(at, &x, bytes));
  if (bytes == sizeof(float)) {
    const float y = float(x);
    std::memcpy(at, &y, sizeof y);
  } else if (bytes == sizeof(double)) {
    const double y = double(x);
    std::memcpy(at, &y, sizeof y);
  } else {
    const long double y = static_cast<long double>(x);
    std::memcpy(at, &y, 10);
  }
}

}  // namespace

void write_element(char* at, const element& e, bool wide, std::mt19937_64& random) {
  const auto small = random() % 4;
  switch (e.holds) {
    case content::integer: write_number(at, e.value, false, wide ? random() : small); break;
    case content::floating: write_number(at, e.value, true, small); break;
    case content::complex:
      write_number(at, e.value, true, small);
      write_number(at + e.value, e.value, true, random() % 3);
      break;
    case content::pair: {
      const bool floats = e.type == MPI_DOUBLE_INT || e.type == MPI_FLOAT_INT;
      write_number(at, e.value, floats, small);
      write_number(at + std::max<std::size_t>(e.value, 4), 4, false, random() % 100);
      break;
    }
    case content::logical: *at = char(small % 2); break;  // of others libraries differ
    case content::affine:
    case content::bytes:
      for (std::size_t b = 0; b < e.extent; ++b) at[b] = char(random());
  }
}

namespace {

// Nothing says that elements are aligned.
unsigned word(const void* at, int i) {
  unsigned x = 0;
  std::memcpy(&x, static_cast<const char*>(at) + i * 4, sizeof x);
  return x;
}
void set_word(void* at, int i, unsigned x) {
  std::memcpy(static_cast<char*>(at) + i * 4, &x, sizeof x);
}

}  // namespace

MPI_Op own_sum() {
  static const MPI_Op op = [] {
    MPI_Op made = MPI_OP_NULL;
    MPI_Op_create(
        [](void* in, void* inout, int* n, MPI_Datatype*) {
          for (int i = 0; i < *n; ++i) set_word(inout, i, word(in, i) + word(inout, i));
        },
        1, &made);
    return made;
  }();
  return op;
}

MPI_Op own_chain() {
  static const MPI_Op op = [] {
    MPI_Op made = MPI_OP_NULL;
    MPI_Op_create(
        [](void* in, void* inout, int* n, MPI_Datatype*) {
          for (int i = 0; i < 2 * *n; i += 2) {
            const unsigned a = word(in, i), b = word(in, i + 1), c = word(inout, i);
            set_word(inout, i, a * c);
            set_word(inout, i + 1, b * c + word(inout, i + 1));
          }
        },
        0, &made);
    return made;
  }();
  return op;
}

MPI_Op op_for(const element& e, std::uint64_t drawn) {
  const MPI_Op integers[] = {MPI_SUM, MPI_PROD, MPI_MIN,  MPI_MAX,  MPI_LAND,
                             MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BXOR, MPI_BOR};
  const MPI_Op pairs[] = {MPI_MINLOC, MPI_MAXLOC};
  if (e.type == MPI_INT && drawn % 13 > 10) return own_sum();
  switch (e.holds) {
    case content::integer: return integers[drawn % 10];
    case content::floating: return integers[drawn % 4];
    case content::logical: return integers[4 + drawn % 3];
    case content::complex: return MPI_SUM;  // of products the order shows, in the sign of 0
    case content::affine: return own_chain();
    default: return pairs[drawn % 2];
  }
}

std::string name_of(MPI_Op op) {
  static const std::pair<MPI_Op, const char*> known[] = {
      {MPI_SUM, "sum"},   {MPI_PROD, "prod"}, {MPI_MIN, "min"},       {MPI_MAX, "max"},
      {MPI_LAND, "land"}, {MPI_LOR, "lor"},   {MPI_LXOR, "lxor"},     {MPI_BAND, "band"},
      {MPI_BXOR, "bxor"}, {MPI_BOR, "bor"},   {MPI_MINLOC, "minloc"}, {MPI_MAXLOC, "maxloc"}};
  for (const auto& [it, name] : known)
    if (it == op) return name;
  return "its own op";
}

}  // namespace fuzz
