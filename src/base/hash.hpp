// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Hashes that are the same in every build and on every rank.
#pragma once

#include <cstdint>
#include <string_view>

namespace sucl::base {

inline constexpr std::uint64_t fnv_prime = 0x100000001b3;

/// A hash and one more value.
constexpr std::uint64_t hash_with(std::uint64_t hash, std::uint64_t value) noexcept {
  return (hash ^ value) * fnv_prime;
}

/// FNV-1a, 64 bits.
constexpr std::uint64_t fnv1a(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = hash_with(hash, static_cast<unsigned char>(c));
  return hash;
}

}  // namespace sucl::base
