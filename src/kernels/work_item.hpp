// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Where a work item of a SYCL kernel stands, for the device functions.
#pragma once

#include <sycl/sycl.hpp>

#include <cstdint>

// AdaptiveCpp's CPU backend gets none of this: where work items wait for each other it takes its
// compiler many minutes, and plans are faster there anyway.
#if defined(SYCL_IMPLEMENTATION_ACPP) && !defined(__CUDA_ARCH__) && !defined(__HIP_DEVICE_COMPILE__)
#define SUCL_KERNELS_EMPTY
#endif

namespace sucl::kernels {

/// A work item of a SYCL kernel.
class work_item {
 public:
  explicit work_item(const ::sycl::nd_item<1>& item)
      : m_item(item),
        m_thread(static_cast<int>(item.get_local_id(0))),
        m_threads(static_cast<int>(item.get_local_range(0))),
        m_group(static_cast<int>(item.get_group(0))),
        m_groups(static_cast<int>(item.get_group_range(0))) {}

  int thread() const { return m_thread; }
  int threads() const { return m_threads; }
  int group() const { return m_group; }
  int groups() const { return m_groups; }

  /// Work items that act together, from thread() on a multiple of it; 1: none do.
#ifdef __CUDA_ARCH__
  static constexpr int warp = 32;
  void converge() const { asm volatile("bar.warp.sync 0xffffffff;" : : : "memory"); }
  bool all_of_warp(bool ok) const {
    std::uint32_t all;
    asm volatile(
        "{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.all.pred p, p, 0xffffffff; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(all)
        : "r"(static_cast<std::uint32_t>(ok))
        : "memory");
    return all != 0;
  }
#else
  static constexpr int warp = 1;
#endif

  void barrier() const {
#ifdef __CUDA_ARCH__
    asm volatile("barrier.sync 0;" : : : "memory");
#else
    ::sycl::group_barrier(m_item.get_group());
#endif
  }
  bool together(bool ok) const {
#ifdef __CUDA_ARCH__
    std::uint32_t all;
    asm volatile(
        "{ .reg .pred p; setp.ne.u32 p, %1, 0; barrier.red.and.pred p, 0, p; selp.u32 %0, 1, 0, p; "
        "}"
        : "=r"(all)
        : "r"(static_cast<std::uint32_t>(ok))
        : "memory");
    return all != 0;
#else
    ::sycl::group_barrier(m_item.get_group());
    return ::sycl::all_of_group(m_item.get_group(), ok);
#endif
  }

 private:
  ::sycl::nd_item<1> m_item;
  int m_thread, m_threads, m_group, m_groups;
};

}  // namespace sucl::kernels
