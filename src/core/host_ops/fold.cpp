// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/host_ops/fold.hpp"

#include "core/host_ops/nt_copy.hpp"

#include <algorithm>

namespace sucl::core {

fold_function find_fold_baseline(sucl_type type, sucl_op op) noexcept;
#if defined(__x86_64__)
fold_function find_fold_avx2(sucl_type type, sucl_op op) noexcept;
fold_function find_fold_avx512(sucl_type type, sucl_op op) noexcept;
#endif

instruction_set best_instruction_set() noexcept {
#if defined(__x86_64__)
  static const instruction_set best = [] {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
      return instruction_set::avx512;
    if (__builtin_cpu_supports("avx2")) return instruction_set::avx2;
    return instruction_set::baseline;
  }();
  return best;
#else
  return instruction_set::baseline;
#endif
}

const char* name(instruction_set set) noexcept {
  switch (set) {
    case instruction_set::avx512: return "avx512";
    case instruction_set::avx2: return "avx2";
    default: return "baseline";
  }
}

fold_function find_fold(instruction_set set, sucl_type type, sucl_op op) noexcept {
#if defined(__x86_64__)
  if (set == instruction_set::avx512) return find_fold_avx512(type, op);
  if (set == instruction_set::avx2) return find_fold_avx2(type, op);
#endif
  (void)set;
  return find_fold_baseline(type, op);
}

fold_function find_fold(sucl_type type, sucl_op op) noexcept {
  return find_fold(best_instruction_set(), type, op);
}

void fold_nontemporal(fold_function fold, std::uint64_t element_size, std::byte* to,
                      const void** from, std::size_t sources, std::uint64_t count,
                      int divisor) noexcept {
  alignas(64) std::byte block[std::size_t{16} << 10];  // stays in the first cache
  const std::uint64_t most = sizeof block / element_size;
  for (std::uint64_t n = 0; count > 0; count -= n) {
    n = std::min(most, count);
    fold(block, from, sources, n, divisor);
    copy_nontemporal(to, block, n * element_size);
    to += n * element_size;
    for (std::size_t i = 0; i < sources; ++i)
      from[i] = static_cast<const std::byte*>(from[i]) + n * element_size;
  }
}

}  // namespace sucl::core
