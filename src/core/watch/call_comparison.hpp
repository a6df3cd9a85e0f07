// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Whether the ranks of a communicator of several nodes call the same, found out beside the
/// operations.
#pragma once

#include "core/operation/call_log.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sucl::core {

class call_agreement;
class communicator;

/// What ranks send each other of their calls, as control messages.
struct call_message {
  enum class what : std::uint32_t {
    calls = 16,  ///< to rank 0: what the sender has called
    request,     ///< from rank 0: the calls that it needs, in `calls`
    agreed       ///< from rank 0: the calls up to `calls.from` are the same on both. In reply to a
                 ///< rank that waits for it, and to all before rank 0 itself ends
  };
  what kind = what::calls;
  std::uint32_t waits = 0;  ///< the sender wants a reply when they are
  call_excerpt calls;
};

/// One communicator's part of it. Rank 0 compares: every other rank reports to it the history of
/// its last call, now and then. Where it differs from that of the same call on rank 0, that asks
/// for the calls before, until it has the first one that differs, and then all ranks what they have
/// called there. The watch thread alone.
class call_comparison {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  using sender = std::function<void(int rank, const call_message&)>;

  call_comparison(communicator& of, sender send);

  /// Sends what is due.
  void poll(time_point now);
  void take(int source, const call_message& m, time_point now);
  /// Who has called what, once it is known to differ. Given once, on rank 0.
  std::optional<std::string> take_difference();

 private:
  struct peer {
    std::uint64_t agreed = 0;     ///< number of the last call known to be the same
    std::uint64_t reported = 0;   ///< of the last one that it has reported
    std::uint64_t history = 0;    ///< of that
    std::uint64_t requested = 0;  ///< this call, the last of rank 0
    std::uint64_t confirmed = 0;  ///< the rank knows that the calls up to this one are the same
    bool waits = false;
  };
  /// The first call in which a rank differs is one of these.
  struct search {
    int rank;
    std::uint64_t low, high;
  };
  /// The call that every rank has to report.
  struct call_query {
    std::uint64_t number;
    time_point until;
    std::vector<bool> answered;
    std::vector<ranks_call> calls;
  };

  void report(time_point now);
  void compare_all(time_point now);
  void compare(int rank, std::uint64_t number, std::uint64_t history, time_point now);
  void confirm(int rank);
  void request_calls(int rank, std::uint64_t from, std::uint64_t stride, std::uint64_t count) const;
  void ask_for_search() const;
  void narrow(const call_excerpt& theirs, time_point now);
  void ask_all(std::uint64_t number, time_point now);
  void answer(int source, const call_excerpt& theirs);
  void conclude();

  call_agreement& m_of;
  sender m_send;
  const int m_rank, m_size;
  std::chrono::microseconds m_interval;  ///< between reports of a rank
  std::uint64_t m_reported = 0;          ///< rank 0: where it was at the last poll
  bool m_waiting = false;                ///< rank 0 knows that this rank waits
  time_point m_last_report;
  std::vector<peer> m_peers;  ///< by rank; on rank 0
  std::optional<search> m_search;
  std::optional<call_query> m_query;
  std::optional<std::string> m_difference;
  bool m_found = false;  ///< it is given, or known to another one
};

}  // namespace sucl::core
