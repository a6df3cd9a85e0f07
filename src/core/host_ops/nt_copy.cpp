// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/host_ops/nt_copy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace sucl::core {

#if defined(__x86_64__)

namespace {

constexpr std::uint64_t line = 64;

// To whole lines: one that is written by non-temporal stores in parts is written several times.
void stream_lines(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes; i += line) {
    const auto part = [&](std::uint64_t k) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i + k));
    };
    const __m128i a = part(0), b = part(16), c = part(32), d = part(48);
    auto* out = reinterpret_cast<__m128i*>(to + i);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  _mm_sfence();
}

}  // namespace

void copy_nontemporal(void* to, const void* from, std::uint64_t bytes) noexcept {
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  const std::uint64_t to_line = -reinterpret_cast<std::uintptr_t>(out) % line;
  const std::uint64_t head = to_line < bytes ? to_line : bytes;
  const std::uint64_t body = (bytes - head) / line * line, tail = bytes - head - body;
  if (head > 0) std::memcpy(out, in, head);
  if (tail > 0) std::memcpy(out + head + body, in + head + body, tail);
  stream_lines(out + head, in + head, body);
}

#else

void copy_nontemporal(void* to, const void* from, std::uint64_t bytes) noexcept {
  std::memcpy(to, from, bytes);
}

#endif

nt_store_policy::mode nt_store_policy::next(std::uint64_t bytes) noexcept {
  const bool is_long = bytes >= min_timed_bytes;
  if (is_long && m_until_trial-- <= 0) return mode::timed;
  if (!past_caches_for(bytes)) return mode::ordinary;
  if (!is_long) --m_short_left;
  return mode::nontemporal;
}

void nt_store_policy::copy(void* to, const void* from, std::uint64_t bytes) noexcept {
  switch (next(bytes)) {
    case mode::ordinary: std::memcpy(to, from, bytes); break;
    case mode::nontemporal: copy_nontemporal(to, from, bytes); break;
    case mode::timed: copy_timed(to, from, bytes);
  }
}

void nt_store_policy::copy_timed(void* to, const void* from, std::uint64_t bytes) noexcept {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  std::memcpy(to, from, bytes);
  note(bytes, clock::now() - begin);
}

// Near each other, two cores took lines over at 20 to 40 GB/s, far from each other at 3, and
// operations took 4.7 and 32 us, and with non-temporal stores 10 and 9. One fast copy is no
// accident.
void nt_store_policy::note(std::uint64_t bytes, std::chrono::nanoseconds took) noexcept {
  constexpr double slow = 0.2;  // ns a byte
  const bool is_slow = static_cast<double>(took.count()) > slow * static_cast<double>(bytes);
  m_slow_copies = is_slow ? std::min(m_slow_copies + 1, enough) : 0;
  m_nontemporal = m_slow_copies == enough;
  if (m_nontemporal) m_short_left = short_copies;
  m_until_trial = m_nontemporal ? slow_copies_between : is_slow ? 0 : copies_between;
}

}  // namespace sucl::core
