// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Where the ranks of a node show each other what they have called, and that they disagree.
#pragma once

#include "core/operation/call_signature.hpp"

#include <sucl/error.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace sucl::core {

/// The calls of one rank are numbered alike on every rank. Each has a history: a hash of its
/// signature and of all that were before it. Ranks whose histories of one number differ have called
/// something else, then or before.
///
/// A rank writes to lines of its own, which no rank reads unless something is wrong. One that finds
/// a mismatch writes a diagnosis for all of them, and raises the alarm of each: a word that a rank
/// polls in its own part, with the number of the first call that differs. The calls before it are
/// those of all ranks, and are still to be done by ranks that are late.
class call_board {
 public:
  /// What each rank provides: zeroed, on cache lines of its own.
  static constexpr std::uint64_t part_bytes = 3200;

  call_board() = default;
  /// `parts` by rank; null: on another node.
  call_board(std::vector<std::byte*> parts, int rank);

  /// The history after one more call.
  std::uint64_t history_after(const call_signature& call) const {
    return mix(m_history, call.hash);
  }

  /// Shows call `number`, whose history is history_after(). It may be shown again.
  void show(std::uint64_t number, std::uint64_t history, const call_signature& call) {
    std::byte* entry = m_own + entry_at(number);
    std::uint64_t& shown = m_shown[number % entries];
    if (shown != call.hash) write(entry, shown, call);
    word(entry).store(mark_of(number, history), std::memory_order_release);
  }
  /// It is the last one.
  void keep(std::uint64_t history) { m_history = history; }
  /// The history of the last call.
  std::uint64_t history() const { return m_history; }

  /// The same of calls that ranks compare only now and then, since none waits for another one: see
  /// compare(). Its history is kept.
  void note(const call_signature& call);
  /// Compares what this rank has noted with what the others have, as far as both have come. True
  /// once a rank has found a mismatch; then all ranks get it. Not while note() runs.
  bool compare();

  /// Whether some rank has found a mismatch.
  bool alarmed() const { return m_own && word(m_own).load(std::memory_order_acquire) != 0; }
  /// Whether call `number` is the first one that differs, or a later one.
  bool ends(std::uint64_t number) const {
    const std::uint64_t from = m_own ? word(m_own).load(std::memory_order_acquire) : 0;
    return from != 0 && number >= from;
  }
  /// What it says: the same on every rank. Any thread.
  error_info diagnosis() const;

  /// Whether a rank shows another history for call `number`.
  bool differs(std::uint64_t number, std::uint64_t history) const;
  /// Reports to all ranks what each of them has called, and gives the diagnosis.
  error_info report_mismatch(std::uint64_t number, std::uint64_t history);
  /// Reports to all ranks something else that they do not agree on, from call `from` on.
  error_info report_mismatch(const std::string& what, std::uint64_t from = 1) const;

 private:
  using ref = std::atomic_ref<std::uint64_t>;
  static ref word(std::byte* at) { return ref(*reinterpret_cast<std::uint64_t*>(at)); }

  // A part begins with the alarm: 0, or the first call that differs. The diagnosis of a node is in
  // the part of its first rank.
  static constexpr std::uint64_t line = 64;
  static constexpr std::uint64_t last_at = sizeof(std::uint64_t);  ///< the last noted call
  static constexpr std::uint64_t state_at = line;  ///< none, text_in_progress or text_written
  static constexpr std::uint64_t text_at = 2 * line;
  static constexpr std::uint64_t text_bytes = 1024;
  static constexpr std::uint64_t ring_at = text_at + text_bytes;
  static constexpr std::uint64_t entries = 32;  ///< a line each: mark_of() the call, signature
  static_assert(sizeof(std::uint64_t) + sizeof(call_signature) <= line);
  static_assert(ring_at + entries * line == part_bytes);
  static constexpr std::uint64_t entry_at(std::uint64_t number) {
    return ring_at + number % entries * line;
  }

  // An entry is a sequence lock: its owner sets the mark to 0, writes the signature and sets the
  // new mark; who reads takes the mark before and after the signature, and what lies between counts
  // if both are the mark of the call. Neither ever waits. The mark has the low halves of both
  // numbers.
  static constexpr std::uint64_t mark_of(std::uint64_t number, std::uint64_t history) {
    return number << 32 | static_cast<std::uint32_t>(history);
  }

  struct shown_call {
    std::uint32_t history;
    call_signature call;
  };
  static void write(std::byte* entry, std::uint64_t& shown, const call_signature& call);
  std::optional<shown_call> read(std::size_t rank, std::uint64_t number) const;
  bool compare_with(std::size_t rank);
  std::uint64_t first_difference(std::uint64_t number) const;
  void await_all(std::uint64_t number, std::uint64_t history) const;

  std::vector<std::byte*> m_parts;
  int m_rank = 0;
  std::byte* m_own = nullptr;
  std::byte* m_first = nullptr;  ///< the part of the first rank of the node
  std::uint64_t m_history = 0;
  std::array<std::uint64_t, entries> m_shown{};  ///< hashes of the signatures that entries have
  std::uint64_t m_noted = 0;                     ///< calls
  std::vector<std::uint64_t> m_histories;        ///< of the last of them, by their number
};

}  // namespace sucl::core
