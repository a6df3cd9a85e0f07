// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Settings of the mock backend.
#pragma once

#include <sucl/abi/backend.h>

#include <cstdint>
#include <string>

namespace sucl::mock {

/// What the mock backend is configured to be able to do, and to do wrong.
struct settings {
  std::uint64_t kinds = 0;  ///< bit k: kind k is supported
  std::uint64_t types = 0;
  std::uint64_t ops = 0;
  std::uint64_t memory = 0;
  std::uint64_t max_count = 0;  ///< 0: no limit
  std::uint64_t delay_us = 0;   ///< least time between post and done
  std::uint64_t fail_at = 0;    ///< sequence number that fails; 0: none
  std::int64_t fail_rank = -1;  ///< the rank it fails on; -1: every rank
  std::uint64_t stuck_at = 0;   ///< sequence number whose post() does not return on fail_rank
  std::uint64_t wrong = 0;      ///< bit k: results of kind k are corrupted
  std::string fail_open;        ///< refuse to open with this message
};

/// The message and cure of a setting that cannot be used.
struct complaint {
  std::string message;
  std::string hint;
};

/// Reads the table; the complaint is empty if all of it could be used.
complaint read(const sucl_setting* list, std::uint64_t count, settings& result);

const char* kind_name(sucl_kind kind);  ///< "unknown" for one that is no collective

}  // namespace sucl::mock
