// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The kernels of collective operations, for sucl::kernels::launch().
#pragma once

#include <sycl/sycl.hpp>

#include "kernels/collective/two_shot.hpp"

// AdaptiveCpp's CPU backend gets none of this: where work items wait for each other it takes its
// compiler many minutes, and plans are faster there anyway.
#if defined(SYCL_IMPLEMENTATION_ACPP) && !defined(__CUDA_ARCH__) && !defined(__HIP_DEVICE_COMPILE__)
#define SUCL_KERNELS_EMPTY
#endif

namespace sucl::kernels {

/// A work item of a SYCL kernel.
class item_place {
 public:
  explicit item_place(const ::sycl::nd_item<1>& item)
      : m_item(item),
        m_thread(static_cast<int>(item.get_local_id(0))),
        m_threads(static_cast<int>(item.get_local_range(0))),
        m_group(static_cast<int>(item.get_group(0))),
        m_groups(static_cast<int>(item.get_group_range(0))) {}

  int thread() const { return m_thread; }
  int threads() const { return m_threads; }
  int group() const { return m_group; }
  int groups() const { return m_groups; }

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

/// A collective operation. The offsets are those of the operation's memory in what the kernel is
/// given: whole buffers, or the memory itself.
template <way How, bool MayBeDirect, class Folder, class Amounts>
struct collective {
  exchange_job<Amounts> what;
  Folder folder;
  std::uint64_t send_start, recv_start;
  bool in_place;  ///< what is sent is in the receive memory

  void operator()([[maybe_unused]] ::sycl::nd_item<1> item, [[maybe_unused]] const std::byte* send,
                  [[maybe_unused]] std::byte* recv) const {
#ifndef SUCL_KERNELS_EMPTY
    const memory_pair memory{in_place ? recv + recv_start : send + send_start, recv + recv_start};
    carry_out<How, MayBeDirect>(item_place(item), what, memory, folder);
#endif
  }
};

}  // namespace sucl::kernels

#undef SUCL_KERNELS_EMPTY
