// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The innermost of the executor: looking at a word, raising it, and moving a few bytes.
#pragma once

#include "runtime/exec/fold.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace sucl::core {

/// Looks without a pause between them. A pause takes as long as a word needs from core to core, on
/// some processors as 140 cycles, and small messages come before it would be over.
inline constexpr int eager_looks = 400;

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Whether a word is at least `wanted`, after that many looks.
inline bool look(std::atomic_ref<std::uint64_t> word, std::uint64_t wanted, int looks) {
  for (int n = 0; word.load(std::memory_order_acquire) < wanted; ++n) {
    if (n >= looks) return false;
    if (n >= eager_looks) relax();
  }
  return true;
}

/// Whether a word and the one behind it can be stored at once.
inline bool stores_pairs() noexcept {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  return best_instruction_set() != instruction_set::baseline;  // with AVX they never are seen apart
#else
  return false;
#endif
}

/// Raises a word that has data in the one behind it: 16 bytes, on their own line. Stored one after
/// the other, a peer that looks at the word would take the line away in between.
inline void store_pair(std::uint64_t* word, std::uint64_t value, std::uint64_t next) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  std::atomic_signal_fence(std::memory_order_release);
  _mm_store_si128(reinterpret_cast<__m128i*>(word),
                  _mm_set_epi64x(static_cast<long long>(next), static_cast<long long>(value)));
#else
  word[1] = next;
  std::atomic_ref(*word).store(value, std::memory_order_release);
#endif
}

/// Short copies, which are most, without a call.
inline void move_bytes(void* to, const void* from, std::uint64_t bytes) {
  switch (bytes) {
    case 0: return;
    case 4: std::memcpy(to, from, 4); return;
    case 8: std::memcpy(to, from, 8); return;
    default: std::memcpy(to, from, bytes);
  }
}

}  // namespace sucl::core
