// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Copies and reductions of pieces that are so long that several threads share them.
#pragma once

#include "core/host_ops/fold.hpp"
#include "core/host_ops/helper_threads.hpp"
#include "core/host_ops/nt_copy.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace sucl::core {

/// One thread at a time.
class long_pieces {
 public:
  /// Shorter pieces are copied before a helper has begun.
  static constexpr std::uint64_t min_bytes = 64 * 1024;

  /// So many threads share a piece, the calling one among them.
  explicit long_pieces(int threads) : m_threads(threads) {}

  /// Whether several threads share a piece of so many bytes. The first one starts them.
  bool shares(std::uint64_t bytes) {
    if (bytes < min_bytes || m_threads < 2) return false;
    if (!m_helpers) m_helpers = helper_threads::share(m_threads - 1);
    if (!m_helpers) m_threads = 1;
    return m_threads > 1;
  }

  /// If so, as memcpy and copy_nontemporal().
  void copy(std::byte* to, const std::byte* from, std::uint64_t bytes, bool nontemporal) const;
  /// If so, as fold_nontemporal(), or the function itself.
  void fold(fold_function function, std::uint64_t element_size, std::byte* to,
            const void* const* from, std::size_t sources, std::uint64_t count, int divisor,
            bool nontemporal) const;

 private:
  static constexpr std::uint64_t part = 16 * 1024;  ///< bytes that a thread takes at a time

  int m_threads;
  std::shared_ptr<helper_threads> m_helpers;
};

/// Copies what peers read next, by several threads where it is so long.
inline void copy_to_peers(nt_store_policy& policy, long_pieces& pieces, std::byte* to,
                          const std::byte* from, std::uint64_t bytes) {
  if (!pieces.shares(bytes)) return policy.copy(to, from, bytes);
  const auto how = policy.next(bytes);
  if (how == nt_store_policy::mode::timed) return policy.copy_timed(to, from, bytes);
  pieces.copy(to, from, bytes, how == nt_store_policy::mode::nontemporal);
}

}  // namespace sucl::core
