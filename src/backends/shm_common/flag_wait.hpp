// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The innermost of the executor: polling a flag, raising it, and moving a few bytes.
#pragma once

#include "core/host_ops/fold.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace sucl::core {

/// Polls without a pause between them. A pause takes as long as a cache-line transfer, on
/// some processors as 140 cycles, and small messages come before it would be over.
inline constexpr int spins_without_pause = 400;

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// The flag of a channel: how many signals its owner has raised in a run, which run, and
/// what the owner has called up to it. One word, so that a rank that waits for the signal
/// finds out at no cost whether both mean the same.
///
/// Numbers of runs wrap. A flag is polled by ranks that are in that run or before it, and its
/// owner writes it again before its number could look like a later one: see run_flag::renews().
struct run_flag {
  static constexpr int signal_bits = 16, history_bits = 20, run_bits = 28;
  static constexpr std::uint64_t max_signals = (std::uint64_t{1} << signal_bits) - 1;

  /// The value before any signal.
  static constexpr std::uint64_t of(std::uint64_t run, std::uint64_t history) noexcept {
    constexpr std::uint64_t mask = (std::uint64_t{1} << history_bits) - 1;
    return run << (history_bits + signal_bits) | (history & mask) << signal_bits;
  }
  /// Whether the flags of a slot have to be written at the begin of this run.
  static constexpr bool renews(std::uint64_t run, std::uint64_t slots) noexcept {
    return run % (std::uint64_t{1} << (run_bits - 4)) < slots;
  }
};

enum class flag_state { raised, not_yet, other_call };

/// Whether `signal` of a run is there, after that many polls, or the owner of the flag has called
/// something else in that run; `wanted` is run_flag::of() that run.
inline flag_state poll_flag(std::atomic_ref<std::uint64_t> flag, std::uint64_t wanted,
                            std::uint64_t signal, int spins) {
  for (int n = 0;; ++n) {
    const std::uint64_t differs = flag.load(std::memory_order_acquire) ^ wanted;
    if (differs - signal <= run_flag::max_signals - signal) return flag_state::raised;
    if (differs > run_flag::max_signals &&
        differs >> (run_flag::history_bits + run_flag::signal_bits) == 0)
      return flag_state::other_call;
    if (n >= spins) return flag_state::not_yet;
    if (n >= spins_without_pause) relax();
  }
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
/// the other, a peer that polls the flag would fetch the cache line in between.
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
