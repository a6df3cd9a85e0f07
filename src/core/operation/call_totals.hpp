// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// All that a rank has called on a communicator, in a few words.
#pragma once

#include "core/operation/call_signature.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sucl::core {

/// The collectives that were called, and those that were replayed: how many, and a hash of their
/// signatures in their order. Ranks that have called the same have the same totals, but for what
/// only pairs of ranks know, which adds up to 0 over all ranks.
struct call_totals {
  std::uint64_t calls = 0, replays = 0;
  std::uint64_t call_history = 0, replay_history = 0;
  std::uint64_t pairs = 0;

  /// `balance`: of pair_balance().
  void note(bool replay, std::uint64_t signature_hash, std::uint64_t balance = 0) noexcept {
    const std::uint64_t number = ++(replay ? replays : calls);
    std::uint64_t& history = replay ? replay_history : call_history;
    history = mix(history, signature_hash);
    // Another weight for each call, so that two wrong ones do not make up for each other.
    if (balance != 0) pairs += balance * (mix(replay ? 1 : 0, number) | 1);
  }
  bool calls_like(const call_totals& other) const noexcept {
    return calls == other.calls && replays == other.replays && call_history == other.call_history &&
           replay_history == other.replay_history;
  }
};

/// What a rank has of the pairs of one call. Plain data.
struct pair_note {
  std::uint64_t number = 0;   ///< of the call, or of the replay
  std::uint64_t balance = 0;  ///< of pair_balance()
  std::uint32_t is_replay = 0;
  std::int32_t kind = 0;
};

/// The same of the last calls, which shows in which one two ranks differ.
class pair_log {
 public:
  static constexpr std::size_t remembered = 256;

  /// The last call that `so_far` has.
  void note(const call_totals& so_far, bool replay, std::int32_t kind, std::uint64_t balance) {
    if (balance == 0) return;
    const pair_note n{replay ? so_far.replays : so_far.calls, balance, replay ? 1u : 0u, kind};
    if (m_noted < remembered)
      m_notes.push_back(n);
    else
      m_notes[m_noted % remembered] = n;
    ++m_noted;
  }
  const std::vector<pair_note>& notes() const { return m_notes; }
  /// Whether it has all.
  bool complete() const { return m_noted <= remembered; }

 private:
  std::uint64_t m_noted = 0;
  std::vector<pair_note> m_notes;  ///< by when they were noted, in turns
};

/// What a rank has called on a communicator of several ranks that it has ended. Plain data.
struct ended_calls {
  std::uint64_t job = 0;  ///< its key
  std::uint64_t communicator = 0;
  std::int32_t rank = 0, size = 1;
  /// It has ended in good order, and nothing has failed in it: then all ranks must have the same.
  std::uint32_t comparable = 0, reserved = 0;
  call_totals totals;
};

/// The same of all communicators of a process, as the processes of a job show it to each other.
struct call_checksum {
  std::uint64_t sum = 0;     ///< of all processes together 0 where all ranks have called the same,
  std::uint64_t unsure = 0;  ///< unless some have ended communicators in another way
  std::uint64_t ended = 0;   ///< communicators
};

}  // namespace sucl::core
