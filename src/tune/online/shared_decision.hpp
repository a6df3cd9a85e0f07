// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// How ranks agree on a choice without waiting for one another.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace sucl::tune {

/// The decision on the calls of one class, in memory that all ranks share; zeroed memory is a new
/// one.
///
/// A start of a non-blocking call may not wait for other ranks, yet all must make the same choice
/// in call n, and some are ahead. So a rank that starts call n before the decision raises the
/// number of started calls to n + 1, and the decision, in the same word, holds from that number on:
/// no rank can have started such a call without seeing it.
class shared_decision {
 public:
  /// This rank starts call n, counted from 0. What was agreed on for it, if anything: whether the
  /// first alternative has won.
  std::optional<bool> join(std::uint64_t n);

  /// This rank's median times. The last of `ranks` ranks to say so decides, by the slowest rank:
  /// the first alternative has to take less than that part of the other's time.
  void submit(const std::array<double, 2>& seconds, int ranks, double part);

  /// The medians of the slowest rank, once there is a decision.
  std::array<double, 2> slowest() const;

  /// Makes it a new one. No rank uses it.
  void clear();

  /// Makes it the decision of `key`, which is not 0, if it has no key yet; whether it is that of
  /// `key`.
  bool claim(std::uint64_t key);

 private:
  static constexpr std::uint64_t undecided = 0, won = 1, lost = 2;
  static std::uint64_t word(std::uint64_t calls, std::uint64_t state) { return calls << 2 | state; }

  std::atomic<std::uint64_t> m_key;
  std::atomic<std::uint64_t> m_word;  ///< calls that some rank has started, and the decision
  std::atomic<double> m_slowest[2];
  std::atomic<int> m_submitted;
};

/// Decisions of one communicator by key, in shared zeroed memory.
class shared_decisions {
 public:
  static constexpr std::size_t slots = 256;
  static constexpr std::size_t bytes = slots * sizeof(shared_decision);

  explicit shared_decisions(void* shared = nullptr)
      : m_decisions(static_cast<shared_decision*>(shared)) {}
  bool exist() const { return m_decisions != nullptr; }
  /// Null if the box is full, or there is none: on every rank alike.
  shared_decision* find(std::uint64_t key) const;

 private:
  shared_decision* m_decisions;
};

}  // namespace sucl::tune
