// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Flags that kernels of several devices and processes write and poll, and memory of any
/// alignment. Every function is for device code and for the host alike. What is stored with
/// release at the scope of the system is seen, with all that came before it, by any thread that
/// loads it with acquire, on whatever device.
#pragma once

#include "kernels/collective/args.hpp"

#ifdef __SYCL_DEVICE_ONLY__
#include <sycl/sycl.hpp>
#elif !defined(__ACPP__) && !defined(__HIPSYCL__)
#include <sched.h>
#endif

#include <cstddef>
#include <cstdint>

namespace sucl::kernels {

/// What one work item moves at once.
struct alignas(16) quad {
  std::uint32_t word[4];
};

#if defined(__SYCL_DEVICE_ONLY__) && !defined(__CUDA_ARCH__)

template <::sycl::memory_order Order>
using system_word = ::sycl::atomic_ref<std::uint64_t, Order, ::sycl::memory_scope::system,
                                       ::sycl::access::address_space::global_space>;

SUCL_INLINE std::uint64_t load_acquire(const std::uint64_t* p) {
  const std::uint64_t value =
      system_word<::sycl::memory_order::relaxed>(*const_cast<std::uint64_t*>(p)).load();
  ::sycl::atomic_fence(::sycl::memory_order::acquire, ::sycl::memory_scope::system);
  return value;
}
SUCL_INLINE std::uint64_t load_relaxed(const std::uint64_t* p) {
  return system_word<::sycl::memory_order::relaxed>(*const_cast<std::uint64_t*>(p)).load();
}
SUCL_INLINE void store_release(std::uint64_t* p, std::uint64_t value) {
  ::sycl::atomic_fence(::sycl::memory_order::release, ::sycl::memory_scope::system);
  system_word<::sycl::memory_order::relaxed>(*p).store(value);
}
SUCL_INLINE void store_relaxed(std::uint64_t* p, std::uint64_t value) {
  system_word<::sycl::memory_order::relaxed>(*p).store(value);
}
SUCL_INLINE void back_off() {}
inline constexpr unsigned polls_between_aborts = 1024;

#elif defined(__CUDA_ARCH__)

SUCL_INLINE std::uint64_t load_acquire(const std::uint64_t* p) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}
SUCL_INLINE std::uint64_t load_relaxed(const std::uint64_t* p) {
  std::uint64_t value;
  asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}
SUCL_INLINE void store_release(std::uint64_t* p, std::uint64_t value) {
  asm volatile("st.release.sys.u64 [%0], %1;" : : "l"(p), "l"(value) : "memory");
}
SUCL_INLINE void store_relaxed(std::uint64_t* p, std::uint64_t value) {
  asm volatile("st.relaxed.sys.u64 [%0], %1;" : : "l"(p), "l"(value) : "memory");
}
SUCL_INLINE void back_off() {}
// All warps come to it at the same time, and each waits until the host's memory has answered the
// others: with 1024 a kernel that waits for a late rank saw its data up to 1 ms late.
inline constexpr unsigned polls_between_aborts = 1u << 15;

#else

SUCL_INLINE std::uint64_t load_acquire(const std::uint64_t* p) {
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
SUCL_INLINE std::uint64_t load_relaxed(const std::uint64_t* p) {
  return __atomic_load_n(p, __ATOMIC_RELAXED);
}
SUCL_INLINE void store_release(std::uint64_t* p, std::uint64_t value) {
  __atomic_store_n(p, value, __ATOMIC_RELEASE);
}
SUCL_INLINE void store_relaxed(std::uint64_t* p, std::uint64_t value) {
  __atomic_store_n(p, value, __ATOMIC_RELAXED);
}
inline constexpr unsigned polls_between_aborts = 1024;
#if defined(__ACPP__) || defined(__HIPSYCL__)
SUCL_INLINE void back_off() {}
#else
/// Yields the processor: a peer may need it.
SUCL_INLINE void back_off() { sched_yield(); }
#endif

#endif

/// One line of the LL protocol: twice four bytes of data with a flag in one aligned store of eight
/// bytes, which every device keeps whole. A reader that finds both flags has the data.
SUCL_INLINE void store_ll(std::byte* line, std::uint32_t first, std::uint32_t second,
                          std::uint32_t flag) {
#ifdef __CUDA_ARCH__
  asm volatile("st.volatile.v4.u32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(line), "r"(first), "r"(flag), "r"(second), "r"(flag)
               : "memory");
#else
  auto* words = reinterpret_cast<std::uint64_t*>(line);
  store_relaxed(words, first | std::uint64_t{flag} << 32);
  store_relaxed(words + 1, second | std::uint64_t{flag} << 32);
#endif
}

/// Takes a line if both of its flags are there.
SUCL_INLINE bool load_ll(const std::byte* line, std::uint32_t flag, std::uint32_t& first,
                         std::uint32_t& second) {
#ifdef __CUDA_ARCH__
  std::uint32_t flags[2];
  asm volatile("ld.volatile.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(first), "=r"(flags[0]), "=r"(second), "=r"(flags[1])
               : "l"(line)
               : "memory");
  return flags[0] == flag && flags[1] == flag;
#else
  const auto* words = reinterpret_cast<const std::uint64_t*>(line);
  const std::uint64_t a = load_relaxed(words), b = load_relaxed(words + 1);
  first = static_cast<std::uint32_t>(a);
  second = static_cast<std::uint32_t>(b);
  return a >> 32 == flag && b >> 32 == flag;
#endif
}

/// Sixteen bytes of an LL128 line: one store on GPUs, two elsewhere.
SUCL_INLINE void store_volatile(std::byte* to, const quad& q) {
#ifdef __CUDA_ARCH__
  asm volatile("st.volatile.v4.u32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(to), "r"(q.word[0]), "r"(q.word[1]), "r"(q.word[2]), "r"(q.word[3])
               : "memory");
#else
  auto* words = reinterpret_cast<std::uint64_t*>(to);
  store_relaxed(words, q.word[0] | std::uint64_t{q.word[1]} << 32);
  store_relaxed(words + 1, q.word[2] | std::uint64_t{q.word[3]} << 32);
#endif
}

SUCL_INLINE quad load_volatile(const std::byte* from) {
  quad q;
#ifdef __CUDA_ARCH__
  asm volatile("ld.volatile.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(q.word[0]), "=r"(q.word[1]), "=r"(q.word[2]), "=r"(q.word[3])
               : "l"(from)
               : "memory");
#else
  const auto* words = reinterpret_cast<const std::uint64_t*>(from);
  const std::uint64_t a = load_relaxed(words), b = load_relaxed(words + 1);
  q.word[0] = static_cast<std::uint32_t>(a);
  q.word[1] = static_cast<std::uint32_t>(a >> 32);
  q.word[2] = static_cast<std::uint32_t>(b);
  q.word[3] = static_cast<std::uint32_t>(b >> 32);
#endif
  return q;
}

/// Loads and stores of aligned quads that are touched once. They do not allocate in a processor's
/// own cache: with that, stores to another device are half as fast again.
SUCL_INLINE quad load_whole(const std::byte* from) {
#ifdef __CUDA_ARCH__
  quad q;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(q.word[0]), "=r"(q.word[1]), "=r"(q.word[2]), "=r"(q.word[3])
               : "l"(from)
               : "memory");
  return q;
#else
  return *reinterpret_cast<const quad*>(from);
#endif
}

SUCL_INLINE void store_whole(std::byte* to, const quad& q) {
#ifdef __CUDA_ARCH__
  asm volatile("st.global.L1::no_allocate.v4.u32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(to), "r"(q.word[0]), "r"(q.word[1]), "r"(q.word[2]), "r"(q.word[3])
               : "memory");
#else
  *reinterpret_cast<quad*>(to) = q;
#endif
}

// What is not aligned is rare, and one copy of it is enough.
[[gnu::noinline]] inline quad load_bytes(const std::byte* from, std::uint64_t valid) {
  quad q{};
  if (valid >= sizeof q && reinterpret_cast<std::uintptr_t>(from) % 4 == 0) {
    for (int i = 0; i < 4; ++i) q.word[i] = reinterpret_cast<const std::uint32_t*>(from)[i];
  } else {
    for (std::uint64_t i = 0; i < sizeof q && i < valid; ++i)
      q.word[i / 4] |= std::to_integer<std::uint32_t>(from[i]) << (8 * (i % 4));
  }
  return q;
}

[[gnu::noinline]] inline void store_bytes(std::byte* to, quad q, std::uint64_t valid) {
  if (valid >= sizeof q && reinterpret_cast<std::uintptr_t>(to) % 4 == 0) {
    for (int i = 0; i < 4; ++i) reinterpret_cast<std::uint32_t*>(to)[i] = q.word[i];
  } else {
    for (std::uint64_t i = 0; i < sizeof q && i < valid; ++i)
      to[i] = static_cast<std::byte>(q.word[i / 4] >> (8 * (i % 4)));
  }
}

/// The quad at any address; of the last one of a message only `valid` bytes, the others zero.
SUCL_INLINE quad load_quad(const std::byte* from, std::uint64_t valid) {
  if (valid >= sizeof(quad) && reinterpret_cast<std::uintptr_t>(from) % sizeof(quad) == 0)
    return load_whole(from);
  return load_bytes(from, valid);
}

/// The same for quads of which every second one lies on 8 bytes only.
SUCL_INLINE quad load_words(const std::byte* from, std::uint64_t valid) {
  if (reinterpret_cast<std::uintptr_t>(from) % 8 != 0 || valid < 8) return load_bytes(from, valid);
  const auto* words = reinterpret_cast<const std::uint64_t*>(from);
  if (valid > 8 && valid < sizeof(quad)) return load_bytes(from, valid);
  const std::uint64_t a = words[0], b = valid > 8 ? words[1] : 0;
  return {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(a >> 32),
          static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(b >> 32)};
}

SUCL_INLINE void store_words(std::byte* to, const quad& q, std::uint64_t valid) {
  const bool whole = valid == 8 || valid >= sizeof q;
  if (reinterpret_cast<std::uintptr_t>(to) % 8 != 0 || !whole) return store_bytes(to, q, valid);
  auto* words = reinterpret_cast<std::uint64_t*>(to);
  words[0] = q.word[0] | std::uint64_t{q.word[1]} << 32;
  if (valid > 8) words[1] = q.word[2] | std::uint64_t{q.word[3]} << 32;
}

/// Stores it, of the last one of a message only `valid` bytes.
SUCL_INLINE void store_quad(std::byte* to, const quad& q, std::uint64_t valid) {
  if (valid >= sizeof q && reinterpret_cast<std::uintptr_t>(to) % sizeof q == 0)
    store_whole(to, q);
  else
    store_bytes(to, q, valid);
}

}  // namespace sucl::kernels
