// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// What this rank has called, to be compared with what ranks of other nodes have.
#pragma once

#include "core/operation/call_signature.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace sucl::core {

/// Some calls of a rank: every `stride`th one from number `from` on. Plain data, for messages.
struct call_excerpt {
  static constexpr std::uint64_t most = 64;

  std::uint64_t from = 0, stride = 1;
  std::uint64_t count = 0;  ///< of the requested calls, those that the rank has made and remembers
  call_signature call;      ///< the first one
  std::array<std::uint64_t, most> histories{};  ///< by call
};

/// The collectives of this rank on a communicator. They are numbered from 1, alike on every rank,
/// and each has a history: the hash of its signature and of all before it. One thread at a time,
/// but for last().
class call_log {
 public:
  /// It keeps the histories of this many calls, the last ones.
  static constexpr std::uint64_t remembered = 4096;

  void note(const call_signature& call);
  /// The number of the last call. Any thread.
  std::uint64_t last() const { return m_last.load(std::memory_order_acquire); }
  /// What it knows of some calls, at most call_excerpt::most.
  call_excerpt excerpt(std::uint64_t from, std::uint64_t stride, std::uint64_t count) const;

 private:
  struct entry {
    std::uint64_t history = 0;
    call_signature call;
  };
  const entry* find(std::uint64_t number) const;

  std::atomic<std::uint64_t> m_last{0};
  std::uint64_t m_history = 0;
  std::vector<entry> m_entries;  ///< by number, in turns; grows up to `remembered`
};

}  // namespace sucl::core
