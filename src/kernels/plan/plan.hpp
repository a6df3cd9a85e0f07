// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The kernel that executes plans, for sucl::kernels::launch().
#pragma once

#include "kernels/plan/run.hpp"
#include "kernels/work_item.hpp"

namespace sucl::kernels {

/// A run of a plan. The offsets are those of the operation's memory in what the kernel is given.
template <class Folder>
struct plan_run {
  plan_args what;
  Folder folder;
  std::uint64_t send_start, recv_start;
  bool in_place;  ///< never: as collective

  SUCL_INLINE void operator()([[maybe_unused]] ::sycl::nd_item<1> item,
                              [[maybe_unused]] const std::byte* send,
                              [[maybe_unused]] std::byte* recv) const {
#ifndef SUCL_KERNELS_EMPTY
    if (!what.with) return;  // launched to be loaded
    run_plan(work_item(item), what, memory_pair{send + send_start, recv + recv_start}, folder);
#endif
  }
};

}  // namespace sucl::kernels
