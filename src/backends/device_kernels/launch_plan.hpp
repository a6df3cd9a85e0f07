// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// From operations to kernels: what goes where, and by which protocol.
#pragma once

#include "backends/device_kernels/memory/device.hpp"

#include <sucl/abi/backend.h>

#include <cstdint>
#include <optional>

namespace sucl::core {

/// What the kernels of a communicator have in common.
struct launch_setting {
  int rank = 0;
  int ranks = 1;
  kernels::buffer_layout layout;
  int items = 1;                               ///< of a work group
  int groups = 1;                              ///< of a kernel with pieces, the same on every rank
  std::uint64_t ll_max_bytes = 0;              ///< LL, to each peer
  std::uint64_t ll_two_shot_max_bytes = 0;     ///< LL in two steps
  std::uint64_t ll128_min_bytes = 0;           ///< LL128, to each peer,
  std::uint64_t ll128_max_bytes = 0;           ///< and the most; 0: nothing;
  std::uint64_t ll128_exchange_max_bytes = 0;  ///< and the most where all ranks send as much
  std::uint64_t ll128_two_shot_max_bytes = 0;  ///< LL128 in two steps
  std::uint64_t two_shot_min_bytes = 0;  ///< bytes from which three and more ranks share the work
  std::uint64_t direct_min_bytes = 0;    ///< bytes from which mapped memory is used;
  std::uint64_t direct_min_bytes_of_root = 0;  ///< the same in a broadcast
  bool mapped = false;                         ///< the communicator has any
};

/// Whether kernels support operations of this kind.
bool kernels_support(sucl_kind kind) noexcept;

/// Whether no rank completes such an operation before all ranks have begun it. The same on every
/// rank.
bool implies_barrier(const kernel_launch& kernel, sucl_kind kind) noexcept;

/// The kernel of an operation, but for what changes from one to the next: epoch, await, addresses.
/// It uses the protocol that is wanted if that is possible; every rank must want the same.
kernel_launch make_launch(const sucl_operation& operation, const launch_setting& setting,
                          std::optional<kernels::protocol> wanted = {});

/// Whether the operation has to write its result elsewhere first: what it writes in place is not
/// what it has given away by then.
inline bool needs_bounce_buffer(const sucl_operation& o) noexcept {
  return o.kind == SUCL_KIND_REDUCE_SCATTER && (o.flags & SUCL_FLAG_IN_PLACE) != 0;
}

}  // namespace sucl::core
