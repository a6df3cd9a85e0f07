// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How ranks agree that all of them can take a step of set-up.
#pragma once

#include "core/exchange/core_services.hpp"

#include <sucl/error.hpp>

#include <optional>
#include <string>

namespace sucl::core {

/// What one rank says.
struct readiness {
  std::string choice;               ///< what must be the same on every rank
  std::optional<error_info> wrong;  ///< why this rank cannot take the step
};

/// Exchanges what all ranks say. If a rank cannot take the step, it throws its own error, and every
/// other rank throws that error as "rank 3 `cannot`: ...", with `hint` unless the error has one.
/// Returns the first rank whose choice differs from that of rank 0, or 0. Collective.
int agree(const sucl_oob& oob, int rank, int size, const readiness& mine, const char* cannot,
          const char* hint = "");

}  // namespace sucl::core
