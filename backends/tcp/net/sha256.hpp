// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// SHA-256 (FIPS 180-4), HMAC of it (RFC 2104), and what a proof of a secret needs besides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sucl::tcp {

using digest = std::array<unsigned char, 32>;
using nonce = std::array<unsigned char, 16>;

/// One message, in as many pieces as wanted.
class sha256 {
 public:
  sha256();
  sha256& add(const void* data, std::size_t bytes);
  digest finish();

 private:
  void compress(const unsigned char* block);
  std::array<std::uint32_t, 8> m_state;
  std::array<unsigned char, 64> m_block{};
  std::uint64_t m_bytes = 0;
};

digest hmac(std::string_view key, std::string_view message);

/// Takes as long wherever they differ.
bool equal(const digest& a, const digest& b);

/// From the system's source; throws problem where that fails.
nonce random_nonce();

std::string hex(const void* data, std::size_t bytes);
/// The bytes that hex() wrote; empty if it did not.
std::string unhex(std::string_view text);

}  // namespace sucl::tcp
