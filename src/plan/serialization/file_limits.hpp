// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What both file forms of a plan, text and JSON, have in common.
#pragma once

#include "base/bounds.hpp"
#include "plan/ir/problem.hpp"

#include <cstddef>
#include <cstdint>

namespace sucl::plan {

/// The word for a problem that is no collective of the API.
inline constexpr const char* custom = "custom";

/// The longest JSON of a plan: its values take twenty times as much memory.
inline constexpr std::size_t max_json_bytes = std::size_t{16} << 20;

/// The longest text of a plan: its instructions take up to ten times as much memory.
inline constexpr std::size_t max_text_bytes = std::size_t{32} << 20;

/// What the numbers of a plan may be.
using range = base::bounds<std::uint64_t>;
inline constexpr range any_bytes{0, max_bytes};
inline constexpr range element_sizes{1, max_bytes};
inline constexpr range rank_counts{1, max_ranks};
inline constexpr range rank_numbers{0, max_ranks - 1};

}  // namespace sucl::plan
