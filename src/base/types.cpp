// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include <sucl/types.hpp>

#include <array>
#include <string_view>

namespace sucl {
namespace {

struct kind_row {
  const char* name;
  bool reduces;
  bool rooted;
};

constexpr std::array<kind_row, SUCL_KIND_COUNT> kinds{{
    {"barrier", false, false},       {"broadcast", false, true},
    {"reduce", true, true},          {"allreduce", true, false},
    {"reduce_scatter", true, false}, {"reduce_scatter_block", true, false},
    {"allgather", false, false},     {"allgatherv", false, false},
    {"alltoall", false, false},      {"alltoallv", false, false},
    {"gather", false, true},         {"gatherv", false, true},
    {"scatter", false, true},        {"scatterv", false, true},
    {"scan", true, false},           {"exscan", true, false},
    {"send", false, false},          {"recv", false, false},
    {"sendrecv", false, false},      {"group", false, false},
}};

constexpr std::array<const char*, SUCL_OP_COUNT> ops{
    "none",       "sum",         "prod",    "min",    "max",     "avg",    "logical_and",
    "logical_or", "logical_xor", "bit_and", "bit_or", "bit_xor", "minloc", "maxloc"};

enum class family { opaque, integer, real, complex, pair, boolean };

struct type_row {
  const char* name;
  std::size_t size;
  family of;
};

constexpr std::array<type_row, SUCL_TYPE_COUNT> types{{
    {"bytes", 0, family::opaque},
    {"int8", 1, family::integer},
    {"uint8", 1, family::integer},
    {"int16", 2, family::integer},
    {"uint16", 2, family::integer},
    {"int32", 4, family::integer},
    {"uint32", 4, family::integer},
    {"int64", 8, family::integer},
    {"uint64", 8, family::integer},
    {"fp16", 2, family::real},
    {"bf16", 2, family::real},
    {"fp32", 4, family::real},
    {"fp64", 8, family::real},
    {"complex_fp32", 8, family::complex},
    {"complex_fp64", 16, family::complex},
    {"int16_loc", sizeof(loc<std::int16_t>), family::pair},
    {"int32_loc", sizeof(loc<std::int32_t>), family::pair},
    {"int64_loc", sizeof(loc<std::int64_t>), family::pair},
    {"fp32_loc", sizeof(loc<float>), family::pair},
    {"fp64_loc", sizeof(loc<double>), family::pair},
    {"bool", 1, family::boolean},
    {"fp8_e4m3", 1, family::real},
    {"fp8_e5m2", 1, family::real},
}};

template <class Table, class Enum>
auto row(const Table& table, Enum value) noexcept -> const typename Table::value_type* {
  const auto index = static_cast<std::size_t>(value);
  return index < table.size() ? &table[index] : nullptr;
}

}  // namespace

const char* name(kind k) noexcept {
  const auto* r = row(kinds, k);
  return r ? r->name : "unknown";
}

const char* name(op o) noexcept {
  const auto* r = row(ops, o);
  return r ? *r : "unknown";
}

const char* name(type t) noexcept {
  const auto* r = row(types, t);
  return r ? r->name : "unknown";
}

std::size_t size_of(type t) noexcept {
  const auto* r = row(types, t);
  return r ? r->size : 0;
}

bool defined(op o, type t) noexcept {
  const auto* r = row(types, t);
  if (!r) return false;
  switch (o) {
    case op::sum:
    case op::prod:
    case op::avg:
      return r->of == family::integer || r->of == family::real || r->of == family::complex;
    case op::min:
    case op::max:
      return r->of == family::integer || r->of == family::real || r->of == family::boolean;
    case op::logical_and:
    case op::logical_or:
    case op::logical_xor: return r->of == family::integer || r->of == family::boolean;
    case op::bit_and:
    case op::bit_or:
    case op::bit_xor: return r->of == family::integer;
    case op::minloc:
    case op::maxloc: return r->of == family::pair;
    case op::none: break;
  }
  return false;
}

bool reduces(kind k) noexcept {
  const auto* r = row(kinds, k);
  return r && r->reduces;
}

bool rooted(kind k) noexcept {
  const auto* r = row(kinds, k);
  return r && r->rooted;
}

}  // namespace sucl
