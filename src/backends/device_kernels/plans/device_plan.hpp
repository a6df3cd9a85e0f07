// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// From a verified schedule to what the kernel of plans interprets.
#pragma once

#include "kernels/plan/args.hpp"
#include "plan/ir/schedule.hpp"
#include "plan/passes/waves.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sucl::core {

/// What the ranks' kernels have in common.
struct device_plan_limits {
  int groups = 1;                  ///< most of a kernel, the same on every rank
  std::uint64_t ll_max_bytes = 0;  ///< largest message of the LL protocol
  /// Smallest and largest message of the LL128 protocol; with a largest of 0 there is none.
  std::uint64_t ll128_min_bytes = 1, ll128_max_bytes = 0;
};

/// One rank's part of a schedule.
struct device_plan {
  std::vector<kernels::plan_step> steps;  ///< channel after channel
  std::vector<kernels::plan_operand> operands;
  /// For each wave, where its steps begin in each channel; behind the last wave, where they end.
  std::vector<std::uint32_t> bounds;
  std::uint64_t scratch_bytes = 0;  ///< this rank's own
  // The same on every rank:
  std::uint64_t flags_bytes = 0, slots_bytes = 0;
  std::uint64_t period = 0, stripe = 0;  ///< see kernels::plan_args
  int groups = 1;
  std::uint32_t waves = 1, first_wave = 0;  ///< the first one that does anything

  std::size_t channels() const { return bounds.size() / (waves + 1); }
  /// Memory that peers reach: flags, then two sets of slots.
  std::uint64_t shared_bytes() const { return flags_bytes + 2 * slots_bytes; }
};

/// Lowers the part of a rank, as one wave. The schedule exchanges messages alone, and is verified.
/// Throws errc::unsupported where it has more of something than kernels take, on every rank alike.
device_plan lower_for_device(const plan::schedule& s, int rank, const device_plan_limits& limits);

/// Lowers the part of a member of a node. Its scratch stays where it is: see align_scratch().
device_plan lower_for_device(const plan::node_part& part, int member,
                             const device_plan_limits& limits);

}  // namespace sucl::core
