// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Whether the ranks of a job have called the same on the communicators that have ended.
#pragma once

#include "core/exchange/core_services.hpp"
#include "core/operation/call_totals.hpp"
#include "core/record/record_layout.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sucl::core {

/// What the ranks of a process have called, until the processes of the job compare it when they
/// end. Ranks that wait for each other find a difference themselves; a root that only sends, or a
/// call of one rank alone for which no other one waits, shows nowhere else.
///
/// Its size does not grow: of each communicator a rank adds a hash to one sum, with weights that
/// cancel out over the ranks where all hashes are the same.
class end_comparison {
 public:
  /// A rank of this process has ended a communicator. Any thread.
  void note(const ended_calls& c, const pair_log& pairs = {});
  call_checksum checksum() const;
  /// Whether find() may find something in what the processes show.
  static bool may_differ(const std::vector<call_checksum>& all);
  /// That ranks have called different operations, where no process is there to say which. Local.
  static std::optional<std::string> find_alone(const std::vector<call_checksum>& all);

  /// The record of a rank of this process in a job, or null.
  using record_finder = std::function<const flight_record*(const ended_calls&)>;
  /// Who has called what, if ranks differ. The same on every process. Collective over the processes
  /// of the job, whose checksums are `all`.
  std::optional<std::string> find(const sucl_oob& oob, const std::vector<call_checksum>& all,
                                  const record_finder& record) const;

 private:
  static constexpr std::size_t remembered = 32;
  std::vector<ended_calls> last() const;
  std::string find_pair(const sucl_oob& oob, int processes, const ended_calls& of) const;

  mutable std::mutex m_mutex;  ///< guards what follows
  call_checksum m_checksum;
  std::array<ended_calls, remembered> m_last{};  ///< by their number, in turns
  std::array<pair_log, remembered> m_pairs;      ///< of the same
};

}  // namespace sucl::core
