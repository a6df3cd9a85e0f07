// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/selection/call_board.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

namespace sucl::core {
namespace {

constexpr std::size_t word_bytes = sizeof(std::uint64_t);
static_assert(sizeof(call_signature) % word_bytes == 0);

constexpr std::uint64_t text_in_progress = 1, text_written = 2;

// Noted calls whose histories a rank remembers, for those that come later.
constexpr std::uint64_t remembered = 4096;

}  // namespace

call_board::call_board(std::vector<std::byte*> parts, int rank)
    : m_parts(std::move(parts)), m_rank(rank), m_own(m_parts[static_cast<std::size_t>(rank)]) {
  for (std::byte* part : m_parts)
    if (part && !m_first) m_first = part;
}

void call_board::write(std::byte* entry, std::uint64_t& shown, const call_signature& call) {
  std::array<std::uint64_t, sizeof(call_signature) / word_bytes> words;
  std::memcpy(words.data(), &call, sizeof call);
  word(entry).store(0, std::memory_order_relaxed);
  // Release: a reader that sees one of these sees the 0 when it takes the mark again.
  for (std::size_t i = 0; i < words.size(); ++i)
    word(entry + (i + 1) * word_bytes).store(words[i], std::memory_order_release);
  shown = call.hash;
}

// Nothing where that rank does not show this call, or is about to show another one.
std::optional<call_board::shown_call> call_board::read(std::size_t rank,
                                                       std::uint64_t number) const {
  std::byte* entry = m_parts[rank] ? m_parts[rank] + entry_at(number) : nullptr;
  if (!entry) return std::nullopt;
  const std::uint64_t mark = word(entry).load(std::memory_order_acquire);
  if (mark >> 32 != static_cast<std::uint32_t>(number)) return std::nullopt;
  shown_call result;
  result.history = static_cast<std::uint32_t>(mark);
  std::array<std::uint64_t, sizeof(call_signature) / word_bytes> words;
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = word(entry + (i + 1) * word_bytes).load(std::memory_order_acquire);
  std::memcpy(static_cast<void*>(&result.call), words.data(), sizeof result.call);
  if (word(entry).load(std::memory_order_relaxed) != mark) return std::nullopt;
  return result;
}

bool call_board::differs(std::uint64_t number, std::uint64_t history) const {
  for (std::size_t r = 0; r < m_parts.size(); ++r)
    if (const auto other = read(r, number);
        other && other->history != static_cast<std::uint32_t>(history))
      return true;
  return false;
}

void call_board::note(const call_signature& call) {
  m_histories.resize(remembered);
  const std::uint64_t history = history_after(call);
  show(++m_noted, history, call);
  keep(history);
  m_histories[m_noted % remembered] = history;
  word(m_own + last_at).store(m_noted, std::memory_order_release);
}

// A rank that is ahead knows what it was like when it was where the other one is.
bool call_board::compare_with(std::size_t rank) {
  const std::uint64_t last = word(m_parts[rank] + last_at).load(std::memory_order_acquire);
  const std::uint64_t both = std::min(last, m_noted);
  if (both == 0 || m_noted - both >= remembered) return false;
  const auto other = read(rank, both);
  if (!other || other->history == static_cast<std::uint32_t>(m_histories[both % remembered]))
    return false;
  report_mismatch(both, m_histories[both % remembered]);
  return true;
}

bool call_board::compare() {
  for (std::size_t r = 0; r < m_parts.size() && !alarmed(); ++r)
    if (m_parts[r] && m_parts[r] != m_own && compare_with(r)) break;
  return alarmed();
}

// The first call in which ranks differ, as far as that is still to be seen: some wait for no peer.
std::uint64_t call_board::first_difference(std::uint64_t number) const {
  std::uint64_t first = number;
  for (std::uint64_t n = number - 1; n > 0 && number - n < entries; --n) {
    std::optional<shown_call> any;
    bool differ = false;
    for (std::size_t r = 0; r < m_parts.size(); ++r) {
      const auto other = read(r, n);
      differ = differ || (any && other && other->history != any->history);
      if (other) any = other;
    }
    if (!differ) break;
    first = n;
  }
  return first;
}

// Until every rank shows the call, or for a moment, so that it is said of each what it has called.
// A rank that has called something else shows it, but a prepared run signals first, and may lose
// its processor in between.
void call_board::await_all(std::uint64_t number, std::uint64_t history) const {
  constexpr auto for_all = std::chrono::milliseconds(2);
  constexpr auto for_the_difference = std::chrono::seconds(1);
  const auto begun = std::chrono::steady_clock::now();
  const auto within = [&](auto longest) {
    return std::chrono::steady_clock::now() < begun + longest && !alarmed();
  };
  for (std::size_t r = 0; r < m_parts.size(); ++r)
    while (m_parts[r] && !read(r, number) && within(for_all)) sched_yield();
  while (!differs(number, history) && within(for_the_difference)) sched_yield();
}

error_info call_board::report_mismatch(std::uint64_t number, std::uint64_t history) {
  await_all(number, history);
  if (const std::uint64_t first = first_difference(number); first != number) {
    const auto mine = read(static_cast<std::size_t>(m_rank), first);
    if (mine) number = first, history = mine->history;
  }
  std::vector<ranks_call> calls;
  for (std::size_t r = 0; r < m_parts.size(); ++r)
    if (const auto other = read(r, number))
      calls.push_back({static_cast<int>(r), other->history, other->call});
  return report_mismatch(describe_difference(calls, static_cast<std::uint32_t>(history)), number);
}

// The rank that finds a mismatch first writes the error for all. A call that differs may be found
// before one that was called earlier.
error_info call_board::report_mismatch(const std::string& what, std::uint64_t from) const {
  std::uint64_t none = 0;
  if (word(m_first + state_at).compare_exchange_strong(none, text_in_progress)) {
    auto* text = reinterpret_cast<char*>(m_first + text_at);
    text[what.copy(text, text_bytes - 1)] = '\0';
    word(m_first + state_at).store(text_written, std::memory_order_release);
  }
  for (std::byte* part : m_parts) {
    if (!part) continue;
    std::uint64_t was = word(part).load(std::memory_order_relaxed);
    while ((was == 0 || was > from) && !word(part).compare_exchange_weak(was, from)) {
    }
  }
  return diagnosis();
}

error_info call_board::diagnosis() const {
  // Its writer needs no more than a moment, unless it is killed.
  constexpr int spin_limit = 100000;
  for (int polls = 0; polls < spin_limit; ++polls) {
    if (word(m_first + state_at).load(std::memory_order_acquire) == text_written)
      return mismatch_error(reinterpret_cast<const char*>(m_first + text_at));
    sched_yield();
  }
  return mismatch_error("ranks called different operations");
}

}  // namespace sucl::core
