// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/config/determinism.hpp"

#include <array>

namespace sucl::base {
namespace {

constexpr std::array<const char*, 3> names{"ranks", "run", "strict"};

bool is_integer(sucl_type type) {
  switch (type) {
    case SUCL_TYPE_BYTES:
    case SUCL_TYPE_INT8:
    case SUCL_TYPE_UINT8:
    case SUCL_TYPE_INT16:
    case SUCL_TYPE_UINT16:
    case SUCL_TYPE_INT32:
    case SUCL_TYPE_UINT32:
    case SUCL_TYPE_INT64:
    case SUCL_TYPE_UINT64: return true;
    default: return false;
  }
}

}  // namespace

const char* name(determinism level) noexcept { return names[static_cast<std::size_t>(level)]; }

determinism determinism_named(std::string_view word) noexcept {
  for (const determinism level : {determinism::run, determinism::strict})
    if (word == name(level)) return level;
  return determinism::ranks;
}

// Integer averages are divided from an exact sum.
bool associative(sucl_type type, sucl_op op) noexcept {
  const bool rounds = op == SUCL_OP_SUM || op == SUCL_OP_PROD || op == SUCL_OP_AVG;
  return !rounds || is_integer(type);
}

}  // namespace sucl::base
