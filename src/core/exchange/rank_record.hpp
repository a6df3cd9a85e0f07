// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What a rank sends the others about itself when a communicator is made.
#pragma once

#include <sucl/error.hpp>
#include <sucl/member.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace sucl::core {

/// What one rank sends; as text on the wire.
struct rank_record {
  member self;                      ///< without rank, node and local rank, which are worked out
  std::string machine;              ///< equal for ranks that share a kernel and process ids
  std::string declared_node;        ///< that the configuration puts it on; empty: none
  std::string declared_island;      ///< the same of islands
  std::string version;              ///< of SuCL
  std::string representation;       ///< of numbers in memory, as "little-endian, long of 8 bytes"
  std::string processors;           ///< that it may run on, as "0-7,16"
  std::uint64_t settings = 0;       ///< hash of the settings that must be the same
  std::uint64_t job = 0;            ///< job::key()
  int world_rank = 0;               ///< rank of the process in the job
  std::optional<error_info> wrong;  ///< why it cannot take part

  std::string text() const;
  /// Nothing if the text is not that of a record, as another version of SuCL writes it.
  static std::optional<rank_record> parse(const std::string& text);
};

}  // namespace sucl::core
