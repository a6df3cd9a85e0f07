// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// From operations to kernels: what goes where, and which way.
#pragma once

#include "backends/device_kernels/device.hpp"

#include <sucl/abi/backend.h>

#include <cstdint>
#include <optional>

namespace sucl::core {

/// What jobs of a communicator have in common.
struct job_setting {
  int rank = 0;
  int ranks = 1;
  kernels::lane_shape shape;
  int items = 1;                       ///< of a work group
  int groups = 1;                      ///< of a kernel with pieces, the same on every rank
  std::uint64_t small = 0;             ///< most that goes in lines to each peer
  std::uint64_t shared = 0;            ///< most that goes in lines in two steps
  std::uint64_t wide_from = 0;         ///< what goes in wide lines to each peer,
  std::uint64_t wide = 0;              ///< and the most; 0: nothing;
  std::uint64_t wide_from_all = 0;     ///< and the most where all ranks send as much
  std::uint64_t two_shot = 0;          ///< bytes from which three and more ranks share the work
  std::uint64_t direct = 0;            ///< bytes from which mapped memory is looked for;
  std::uint64_t direct_from_root = 0;  ///< the same in a broadcast
  bool mapped = false;                 ///< the communicator has any
};

/// Whether kernels carry operations of this kind.
bool kernels_carry(sucl_kind kind) noexcept;

/// Whether a rank that has carried out such an operation has heard of all the others. The same on
/// every rank.
bool hears_all(const kernel_launch& kernel, sucl_kind kind) noexcept;

/// The kernel of an operation, but for what changes from one to the next: epoch, await, lanes. It
/// goes the way that is wanted if that is possible; every rank must want the same.
kernel_launch make_launch(const sucl_operation& operation, const job_setting& setting,
                          std::optional<kernels::way> wanted = {});

/// Whether the operation has to write its result elsewhere first: what it writes in place is not
/// what it has given away by then.
inline bool needs_result_aside(const sucl_operation& o) noexcept {
  return o.kind == SUCL_KIND_REDUCE_SCATTER && (o.flags & SUCL_FLAG_IN_PLACE) != 0;
}

}  // namespace sucl::core
