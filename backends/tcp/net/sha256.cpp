// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "sha256.hpp"

#include "problem.hpp"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace sucl::tcp {
namespace {

// The first bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t word_at(const unsigned char* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 |
         at[3];
}

}  // namespace

// The first bits of the fractional parts of the square roots of the first 8 primes.
sha256::sha256()
    : m_state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
              0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void sha256::compress(const unsigned char* block) {
  std::array<std::uint32_t, 64> w;
  for (std::size_t i = 0; i < 16; ++i) w[i] = word_at(block + 4 * i);
  for (std::size_t i = 16; i < 64; ++i) {
    const auto s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const auto s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = m_state;
  for (std::size_t i = 0; i < 64; ++i) {
    const auto s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const auto t1 = h + s1 + ((e & f) ^ (~e & g)) + constants[i] + w[i];
    const auto s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const auto t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> change{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) m_state[i] += change[i];
}

sha256& sha256::add(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const unsigned char*>(data);
  while (bytes > 0) {
    const std::size_t used = m_bytes % 64;
    const std::size_t n = std::min(bytes, 64 - used);
    std::memcpy(m_block.data() + used, from, n);
    m_bytes += n;
    from += n;
    bytes -= n;
    if (used + n == 64) compress(m_block.data());
  }
  return *this;
}

digest sha256::finish() {
  const std::uint64_t bits = m_bytes * 8;
  const unsigned char one = 0x80, zero = 0;
  add(&one, 1);
  while (m_bytes % 64 != 56) add(&zero, 1);
  std::array<unsigned char, 8> length;
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(bits >> (56 - 8 * i));
  add(length.data(), length.size());
  digest result;
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<unsigned char>(m_state[i / 4] >> (24 - 8 * (i % 4)));
  return result;
}

digest hmac(std::string_view key, std::string_view message) {
  std::array<unsigned char, 64> inner{}, outer{};
  if (key.size() > inner.size()) {
    const digest shorter = sha256().add(key.data(), key.size()).finish();
    std::copy(shorter.begin(), shorter.end(), inner.begin());
  } else {
    std::copy(key.begin(), key.end(), inner.begin());
  }
  outer = inner;
  for (std::size_t i = 0; i < inner.size(); ++i) {
    inner[i] ^= 0x36;
    outer[i] ^= 0x5c;
  }
  const digest first =
      sha256().add(inner.data(), inner.size()).add(message.data(), message.size()).finish();
  return sha256().add(outer.data(), outer.size()).add(first.data(), first.size()).finish();
}

bool equal(const digest& a, const digest& b) {
  volatile unsigned char differs = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    differs = static_cast<unsigned char>(differs | (a[i] ^ b[i]));
  return differs == 0;
}

nonce random_nonce() {
  nonce made;
  std::size_t have = 0;
  while (have < made.size()) {
    const ssize_t n = getrandom(made.data() + have, made.size() - have, 0);
    if (n < 0 && errno != EINTR)
      throw problem{SUCL_ERROR_UNAVAILABLE,
                    std::string("the system gives no random numbers: ") + std::strerror(errno),
                    "Allow the system call getrandom"};
    if (n > 0) have += static_cast<std::size_t>(n);
  }
  return made;
}

std::string hex(const void* data, std::size_t bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  const auto* from = static_cast<const unsigned char*>(data);
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) {
    text += digits[from[i] >> 4];
    text += digits[from[i] & 15];
  }
  return text;
}

std::string unhex(std::string_view text) {
  const auto value = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string bytes;
  if (text.size() % 2 != 0) return {};
  for (std::size_t i = 0; i < text.size(); i += 2) {
    if (value(text[i]) < 0 || value(text[i + 1]) < 0) return {};
    bytes += static_cast<char>(value(text[i]) * 16 + value(text[i + 1]));
  }
  return bytes;
}

}  // namespace sucl::tcp
