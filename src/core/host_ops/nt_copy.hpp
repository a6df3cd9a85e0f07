// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Copies to memory that other processors read.
#pragma once

#include <sucl/export.hpp>

#include <chrono>
#include <cstdint>

namespace sucl::core {

/// Copies `bytes` bytes, with non-temporal stores where the processor has them. A store that
/// follows, as of a flag, is seen after them. The memory does not overlap; no alignment is needed.
SUCL_CORE_API void copy_nontemporal(void* to, const void* from, std::uint64_t bytes) noexcept;

/// Copies to memory whose lines other processors hold, because they have read what was there
/// before. How long it takes to take lines over depends on the processor, and by up to a factor of
/// 17 on where the ranks run, which may change. So now and then an ordinary copy is timed; while
/// they are slow, stores are non-temporal. One thread at a time.
class SUCL_CORE_API nt_store_policy {
 public:
  /// Less than this is always copied as ever: waiting for non-temporal stores costs more than
  /// taking so few lines over.
  static constexpr std::uint64_t min_bytes = 2 * 1024;
  /// What is timed, because shorter copies are over before their stores are.
  static constexpr std::uint64_t min_timed_bytes = 16 * 1024;

  /// Copies; otherwise as copy_nontemporal().
  void copy(void* to, const void* from, std::uint64_t bytes) noexcept;

  /// How copy() does the next one of so many bytes. A timed one is for copy_timed().
  enum class mode { ordinary, nontemporal, timed };
  mode next(std::uint64_t bytes) noexcept;
  /// An ordinary copy by the calling thread alone, which is noted.
  void copy_timed(void* to, const void* from, std::uint64_t bytes) noexcept;

  /// Takes an ordinary copy into account that took so long.
  void note(std::uint64_t bytes, std::chrono::nanoseconds took) noexcept;
  /// Whether cache-line transfers are slow at present, so that copies are non-temporal,
  bool nontemporal() const noexcept { return m_nontemporal; }
  /// and whether one of so many bytes does that is not timed.
  bool past_caches_for(std::uint64_t bytes) const noexcept {
    return m_nontemporal && bytes >= min_bytes && (bytes >= min_timed_bytes || m_short_left > 0);
  }

 private:
  static constexpr int enough = 3;  ///< slow ones, one after the other: any may be interrupted
  static constexpr int first_copies = 16;  ///< the first ones find lines that no cache holds
  static constexpr int copies_between = 16, slow_copies_between = 64;
  /// Where no long copy comes any more to find out, short ones are ordinary again.
  static constexpr int short_copies = 1000;

  bool m_nontemporal = false;
  int m_until_trial = first_copies;
  int m_slow_copies = 0;  ///< since the last one that was not
  int m_short_left = 0;   ///< short copies that are still non-temporal
};

}  // namespace sucl::core
