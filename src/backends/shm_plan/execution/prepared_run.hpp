// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// An operation that is run over and over, with everything worked out.
#pragma once

#include "backends/shm_plan/execution/shared.hpp"
#include "backends/shm_plan/plans/program.hpp"
#include "core/host_ops/fold.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace sucl::core {

class copy_mode_tuner;
struct execution;

/// Memory that a prepared step works on. Scratch is at another place in each run.
struct bound_memory {
  std::byte* at = nullptr;       ///< in scratch: as if that began where the rank's part does
  std::uint64_t in_scratch = 0;  ///< all bits set: it is

  std::byte* in(std::uint64_t scratch_at) const { return at + (scratch_at & in_scratch); }
};

/// A step whose memory is known.
struct bound_step {
  step::action what = step::action::copy;
  bool nontemporal = false;  ///< a copy that is long enough for it to matter
  std::int32_t peer = -1;    ///< of a wait
  std::uint32_t sources = 0;
  std::uint64_t value = 0;  ///< of a signal or a wait, beside the run's number
  std::uint64_t size = 0;   ///< bytes of a copy, or that a signal takes along; elements of a fold
  bound_memory to;
  std::uint64_t* flag = nullptr;  ///< of a signal or a wait, in the first slot
  std::size_t first = 0;          ///< of prepared_run::sources
};

/// One slice on one channel, on the same memory each time. Holds while no tuning table is changed,
/// and no memory made known or forgotten.
struct prepared_run {
  /// Keeps the metadata of operations that only begin with exchanging their counts.
  std::shared_ptr<execution> what;
  fold_function fold = nullptr;
  copy_mode_tuner* tuner = nullptr;  ///< only while it is settled that this is not read
  shared_memory::need scratch;
  std::vector<bound_step> steps;
  std::vector<bound_memory> sources;
};

}  // namespace sucl::core
