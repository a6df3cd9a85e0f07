// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include <sucl/types.hpp>

#include "base/names.hpp"

#include <array>

namespace sucl {
namespace {

enum class type_class { opaque, integer, real, complex, pair, boolean };

struct type_row {
  std::size_t size;
  type_class of;
};

// In the order of base::type_names.
constexpr std::array<type_row, SUCL_TYPE_COUNT> types{{
    {0, type_class::opaque},                        // bytes
    {1, type_class::integer},                       // int8
    {1, type_class::integer},                       // uint8
    {2, type_class::integer},                       // int16
    {2, type_class::integer},                       // uint16
    {4, type_class::integer},                       // int32
    {4, type_class::integer},                       // uint32
    {8, type_class::integer},                       // int64
    {8, type_class::integer},                       // uint64
    {2, type_class::real},                          // fp16
    {2, type_class::real},                          // bf16
    {4, type_class::real},                          // fp32
    {8, type_class::real},                          // fp64
    {8, type_class::complex},                       // complex_fp32
    {16, type_class::complex},                      // complex_fp64
    {sizeof(loc<std::int16_t>), type_class::pair},  // int16_loc
    {sizeof(loc<std::int32_t>), type_class::pair},  // int32_loc
    {sizeof(loc<std::int64_t>), type_class::pair},  // int64_loc
    {sizeof(loc<float>), type_class::pair},         // fp32_loc
    {sizeof(loc<double>), type_class::pair},        // fp64_loc
    {1, type_class::boolean},                       // bool
    {1, type_class::real},                          // fp8_e4m3
    {1, type_class::real},                          // fp8_e5m2
}};

template <class Table, class Enum>
auto row(const Table& table, Enum value) noexcept -> const typename Table::value_type* {
  const auto index = static_cast<std::size_t>(value);
  return index < table.size() ? &table[index] : nullptr;
}

// Literals, so that they end with a zero.
template <class Table, class Enum>
const char* name_in(const Table& names, Enum value) noexcept {
  const auto* r = row(names, value);
  return r ? r->data() : "unknown";
}

}  // namespace

const char* name(kind k) noexcept { return name_in(base::kind_names, k); }

const char* name(op o) noexcept { return name_in(base::op_names, o); }

const char* name(type t) noexcept { return name_in(base::type_names, t); }

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
      return r->of == type_class::integer || r->of == type_class::real ||
             r->of == type_class::complex;
    case op::min:
    case op::max:
      return r->of == type_class::integer || r->of == type_class::real ||
             r->of == type_class::boolean;
    case op::logical_and:
    case op::logical_or:
    case op::logical_xor: return r->of == type_class::integer || r->of == type_class::boolean;
    case op::bit_and:
    case op::bit_or:
    case op::bit_xor: return r->of == type_class::integer;
    case op::minloc:
    case op::maxloc: return r->of == type_class::pair;
    case op::none: break;
  }
  return false;
}

bool reduces(kind k) noexcept {
  switch (k) {
    case kind::reduce:
    case kind::allreduce:
    case kind::reduce_scatter:
    case kind::reduce_scatter_block:
    case kind::scan:
    case kind::exscan: return true;
    default: return false;
  }
}

bool rooted(kind k) noexcept {
  switch (k) {
    case kind::broadcast:
    case kind::reduce:
    case kind::gather:
    case kind::gatherv:
    case kind::scatter:
    case kind::scatterv: return true;
    default: return false;
  }
}

}  // namespace sucl
