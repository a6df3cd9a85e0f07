// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Records that were written, to be read.
#pragma once

#include "core/operation/call_signature.hpp"
#include "core/record/record_layout.hpp"

#include <sucl/export.hpp>

#include <string>
#include <vector>

namespace sucl::core {

/// An entry as it was written, and what follows from it.
struct recorded_call {
  std::uint64_t serial = 0;
  std::uint64_t communicator = 0;
  std::uint64_t number = 0;  ///< of the first that it stands for
  std::uint64_t times = 0;
  call_signature call;
  std::int32_t peer = -1;    ///< of a message: where to
  std::int32_t source = -1;  ///< and where from
  std::int32_t message_tag = 0;
  record_state state = record_state::done;
};

/// What the record of a rank has.
struct rank_history {
  std::string file;
  std::uint64_t job = 0;
  int rank = 0, size = 1;
  std::int64_t process = 0;
  int signal = 0;
  std::string host, failure;
  std::vector<record_member> members;
  std::vector<recorded_call> entries;  ///< in the order of the calls of each communicator
};

/// What a record in memory has that no thread writes to.
SUCL_CORE_API rank_history history_of(const flight_record& record);

/// Reads a record, of a file or of the memory of a process. Throws errc::invalid_argument if it is
/// something else, or damaged.
SUCL_CORE_API rank_history read_record(const std::string& file);

}  // namespace sucl::core
