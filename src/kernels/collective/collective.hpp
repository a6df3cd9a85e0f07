// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The kernels of collective operations, for sucl::kernels::launch().
#pragma once

#include "kernels/collective/two_shot.hpp"
#include "kernels/work_item.hpp"

namespace sucl::kernels {

/// A collective operation. The offsets are those of the operation's memory in what the kernel is
/// given: whole buffers, or the memory itself.
template <protocol How, bool MayBeDirect, class Folder, class Amounts>
struct collective {
  exchange_args<Amounts> what;
  Folder folder;
  std::uint64_t send_start, recv_start;
  bool in_place;  ///< what is sent is in the receive memory

  SUCL_INLINE void operator()([[maybe_unused]] ::sycl::nd_item<1> item,
                              [[maybe_unused]] const std::byte* send,
                              [[maybe_unused]] std::byte* recv) const {
#ifndef SUCL_KERNELS_EMPTY
    if (!what.with) return;  // launched to be loaded
    const memory_pair memory{in_place ? recv + recv_start : send + send_start, recv + recv_start};
    run_protocol<How, MayBeDirect>(work_item(item), what, memory, folder);
#endif
  }
};

}  // namespace sucl::kernels
