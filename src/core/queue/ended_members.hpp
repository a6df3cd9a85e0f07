// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Which members of a communicator have ended it, and whether this rank waits for them in vain.
#pragma once

#include "core/context/communicator_context.hpp"
#include "core/failure/peer_processes.hpp"

#include <sucl/error.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sucl::core {

/// Guarded by the communicator's mutex. A member that ends the communicator in good order has taken
/// part in every operation that it has called, and in none after these.
class ended_members {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit ended_members(const communicator_context& c) : m_context(c) {}

  /// Reads what members on this machine have shown since the last poll. Whether any has ended it.
  bool poll() {
    constexpr unsigned period = 16;
    const peer_processes* peers = m_context.owner->peers();
    if (!peers) return !m_ended.empty();
    if (const auto ends = peers->ends_so_far(); ends != m_seen) read(*peers, ends);
    if (++m_polls % period == 0) check_for_deaths(*peers, std::chrono::steady_clock::now());
    return !m_ended.empty();
  }
  /// A member elsewhere reports that it has.
  void note(int member, const communicator_end& e);

  /// Those that have ended it in good order.
  std::vector<int> ended_regularly() const;

  /// Why an operation that this rank waits in since `posted` cannot be done: errc::mismatch, or
  /// errc::peer_lost where a member has not ended it in good order; nothing while it may be done.
  /// `turn`: of a collective, its number among the calls or the replays.
  std::optional<error_info> obstacle(const sucl_operation& waits_in, std::uint64_t turn,
                                     time_point posted, time_point now) const;

  /// Why a collective in which this rank waits, and which the host executes, cannot be done though
  /// the others have made as many calls: all of them have long ended in good order. To be asked all
  /// the time while this rank waits, of the collective that it waits in.
  std::optional<error_info> left_alone(const sucl_operation& waits_in, std::uint64_t turn,
                                       time_point now);

 private:
  struct ended {
    int member;
    communicator_end end;
    time_point seen;
  };
  void read(const peer_processes& peers, std::uint64_t ends);
  void check_for_deaths(const peer_processes& peers, time_point now);
  bool has_ended(int member) const;
  std::string reason_of(const ended& m) const;
  error_info describe_end(const ended& how, const std::vector<int>& members,
                          const std::string& reason, const sucl_operation& waits_in,
                          std::uint64_t turn) const;

  const communicator_context& m_context;
  std::uint64_t m_seen = 0;  ///< ends on this machine that were read
  std::vector<ended> m_ended;
  unsigned m_polls = 0;
  time_point m_last_death_check;
  /// For how long this rank has waited in m_waits_in since all others have ended in good order.
  std::chrono::nanoseconds m_alone{};
  std::uint64_t m_waits_in = 0;
  time_point m_last_poll;
};

}  // namespace sucl::core
