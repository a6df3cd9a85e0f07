// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Finds in the records of ranks which are late, are missing or have called something else.
#pragma once

#include "core/record/record_file.hpp"

#include <sucl/export.hpp>

#include <string>
#include <vector>

namespace sucl::core {

/// What the records of a job say.
struct record_diagnosis {
  bool trouble = false;
  std::string sentence;  ///< one, without the full stop
};

/// The diagnosis of one record for each rank; a rank without one has left none. Throws
/// errc::invalid_argument if they are of several jobs, or several of one rank.
SUCL_CORE_API record_diagnosis diagnose(const std::vector<rank_history>& ranks);

}  // namespace sucl::core
