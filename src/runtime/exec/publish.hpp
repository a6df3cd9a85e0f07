// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Copies to memory that other processors look at.
#pragma once

#include <sucl/export.hpp>

#include <chrono>
#include <cstdint>
#include <limits>

namespace sucl::core {

/// Copies `bytes` bytes, with stores past the caches where the processor has them. A store that
/// follows, as of a flag, is seen after them. The memory does not overlap; no alignment is needed.
SUCL_CORE_API void copy_past_caches(void* to, const void* from, std::uint64_t bytes) noexcept;

/// Copies to memory whose lines other processors hold, because they have read what was there
/// before. How long it takes to take lines over depends on the processor, and by up to a factor of
/// 13 on where the ranks run, which may change. So from time to time some ordinary copies are
/// timed; while they are slow, stores go past the caches. One thread at a time.
class SUCL_CORE_API publisher {
 public:
  /// Less than this is always copied as ever: waiting for stores past the caches costs more than
  /// taking so few lines over.
  static constexpr std::uint64_t least_bytes = 2 * 1024;
  /// What is timed, because shorter copies are over before their stores are.
  static constexpr std::uint64_t least_timed_bytes = 16 * 1024;

  /// Copies; otherwise as copy_past_caches().
  void copy(void* to, const void* from, std::uint64_t bytes) noexcept;

  /// Takes an ordinary copy into account that took so long.
  void note(std::uint64_t bytes, std::chrono::nanoseconds took) noexcept;
  /// How copies are made at present: past the caches where lines travel slowly.
  bool past_caches() const noexcept { return m_past_caches; }

 private:
  static constexpr int trials = 3;         // the fastest one counts: any may be interrupted
  static constexpr int first_copies = 16;  // the first ones find lines that nobody holds
  static constexpr int copies_between = 200;

  bool m_past_caches = false;
  int m_until_trial = first_copies;
  int m_trials = 0;
  double m_least = std::numeric_limits<double>::max();  ///< ns a byte, of this trial
};

}  // namespace sucl::core
