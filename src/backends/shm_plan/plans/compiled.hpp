// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// A plan that a program has compiled, as the executor keeps it: its program and its own scratch.
#pragma once

#include "backends/shm_plan/plans/plan_cache.hpp"
#include "core/host_ops/fold.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace sucl::core {

struct compiled_code {
  /// Starts alternate between two copies of the scratch, so that none has to wait for peers that
  /// still read the one before.
  static constexpr std::size_t copies = 2;

  plan_instance how;
  program code;
  fold_function fold = nullptr;
  std::uint64_t element_size = 1;
  backend_comm memory_provider;
  sucl_region region{};  ///< `copies` times the scratch; none where the plan needs none
  std::array<std::vector<std::byte*>, copies> scratch;  ///< by rank
  std::array<std::uint64_t, copies> last_run{};         ///< that used the copy
  std::uint64_t starts = 0;

  compiled_code() = default;
  compiled_code(const compiled_code&) = delete;
  compiled_code& operator=(const compiled_code&) = delete;
  ~compiled_code() {
    if (region.handle) memory_provider.table->memory_destroy(memory_provider.comm, &region);
  }
};

}  // namespace sucl::core
