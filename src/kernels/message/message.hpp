// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The kernel of sends and receives, for sucl::kernels::launch().
#pragma once

#include "kernels/message/move.hpp"
#include "kernels/work_item.hpp"

namespace sucl::kernels {

/// Sends and receives of one operation; the board is local memory of the work group.
struct message {
  message_args what;

  SUCL_INLINE void operator()([[maybe_unused]] ::sycl::nd_item<1> item,
                              [[maybe_unused]] message_board* board) const {
#ifndef SUCL_KERNELS_EMPTY
    if (!what.with) return;  // launched to be loaded
    move_messages(work_item(item), what, *board);
#endif
  }
};

}  // namespace sucl::kernels
