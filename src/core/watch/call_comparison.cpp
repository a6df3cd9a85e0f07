// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/watch/call_comparison.hpp"

#include "core/communicator/communicator.hpp"

#include <algorithm>
#include <utility>

namespace sucl::core {
namespace {

using namespace std::chrono_literals;

// For ranks to say what they have called, once it is known that some differ. They do at once, but
// for those that are gone or stopped, or get no processor.
constexpr auto time_to_answer = 10s;

// Rank 0 of many ranks gets some thousand reports in a second at most.
constexpr auto time_for_report = 250us;

}  // namespace

call_comparison::call_comparison(communicator& of, sender send)
    : m_of(of.agreement()),
      m_send(std::move(send)),
      m_rank(of.rank()),
      m_size(of.size()),
      m_interval(time_for_report * of.size()),
      m_peers(m_rank == 0 ? static_cast<std::size_t>(m_size) : 0) {}

void call_comparison::poll(time_point now) {
  if (m_found) return;
  if (m_rank != 0) return report(now);
  compare_all(now);
  if (m_query && now >= m_query->until) conclude();
}

// ---- other ranks

void call_comparison::report(time_point now) {
  const std::uint64_t last = m_of.calls_made();
  const bool waits = m_of.is_awaited();
  if (last == 0 || (last == m_reported && waits == m_waiting)) return;
  if (!waits && now - m_last_report < m_interval) return;
  call_message m;
  m.waits = waits ? 1 : 0;
  m.calls = m_of.excerpt(last, 1, 1);
  m_send(0, m);
  m_reported = last;
  m_waiting = waits;
  m_last_report = now;
}

void call_comparison::take(int source, const call_message& m, time_point now) {
  switch (m.kind) {
    case call_message::what::request: {
      call_message reply;
      reply.calls = m_of.excerpt(m.calls.from, m.calls.stride, m.calls.count);
      return m_send(source, reply);
    }
    case call_message::what::agreed: return m_of.note(m.calls.from);
    case call_message::what::calls: break;
  }
  if (m_found || m_rank != 0) return;
  if (m_query) return answer(source, m.calls);
  if (m_search && m_search->rank == source && m.calls.from == m_search->low)
    return narrow(m.calls, now);
  if (m.calls.count == 0) return;
  peer& p = m_peers[static_cast<std::size_t>(source)];
  p.waits = p.waits || m.waits;
  if (m.calls.from < p.reported && m.calls.from > m_of.calls_made()) return;
  if (m.calls.from > p.reported) {
    p.reported = m.calls.from;
    p.history = m.calls.histories[0];
  }
  compare(source, m.calls.from, m.calls.histories[0], now);
}

// ---- rank 0

void call_comparison::request_calls(int rank, std::uint64_t from, std::uint64_t stride,
                                    std::uint64_t count) const {
  call_message m;
  m.kind = call_message::what::request;
  m.calls.from = from;
  m.calls.stride = stride;
  m.calls.count = count;
  m_send(rank, m);
}

// Requests from each rank that is ahead the call that rank 0 has reached, if rank 0 makes no
// progress.
void call_comparison::compare_all(time_point now) {
  const std::uint64_t last = m_of.calls_made();
  const bool ends = m_of.is_awaited();
  std::uint64_t agreed = last;
  for (int r = 1; r < m_size && !m_search && !m_query; ++r) {
    peer& p = m_peers[static_cast<std::size_t>(r)];
    if (p.reported > p.agreed && p.reported <= last) compare(r, p.reported, p.history, now);
    const bool ahead = p.reported > last && last > p.agreed && last == m_reported;
    if (ahead && std::exchange(p.requested, last) != last) request_calls(r, last, 1, 1);
    agreed = std::min(agreed, p.agreed);
    // Once rank 0 has ended there is none to reply to a rank that begins to wait.
    if (ends && p.agreed == last && p.confirmed < last) confirm(r);
  }
  m_reported = last;
  if (m_search || m_query) return;
  m_of.note(agreed);
  if (ends && agreed == last) m_of.note_sent();
}

void call_comparison::confirm(int rank) {
  peer& p = m_peers[static_cast<std::size_t>(rank)];
  p.waits = false;
  p.confirmed = p.agreed;
  call_message m;
  m.kind = call_message::what::agreed;
  m.calls.from = p.agreed;
  m_send(rank, m);
}

void call_comparison::compare(int rank, std::uint64_t number, std::uint64_t history,
                              time_point now) {
  const call_excerpt mine = m_of.excerpt(number, 1, 1);
  if (mine.count == 0 || m_search || m_query) return;  // not yet, or not any more
  peer& p = m_peers[static_cast<std::size_t>(rank)];
  if (mine.histories[0] != history) {
    m_search = search{rank, p.agreed + 1, number};
    if (number == p.agreed + 1) return ask_all(number, now);
    return ask_for_search();
  }
  p.agreed = std::max(p.agreed, number);
  if (p.waits && number >= p.reported) confirm(rank);
}

// As many calls between the last one that was the same and the one that is not as a message has
// room for.
void call_comparison::ask_for_search() const {
  const std::uint64_t range = m_search->high - m_search->low + 1;
  const std::uint64_t stride = (range + call_excerpt::most - 1) / call_excerpt::most;
  request_calls(m_search->rank, m_search->low, stride, (range + stride - 1) / stride);
}

void call_comparison::narrow(const call_excerpt& theirs, time_point now) {
  search& s = *m_search;
  const call_excerpt mine = m_of.excerpt(theirs.from, theirs.stride, theirs.count);
  const std::uint64_t known = std::min(mine.count, theirs.count);
  if (known == 0) return ask_all(s.high, now);  // it is forgotten how it began
  std::uint64_t same = 0;
  while (same < known && mine.histories[same] == theirs.histories[same]) ++same;
  if (same < known) s.high = std::min(s.high, theirs.from + same * theirs.stride);
  if (same > 0) s.low = theirs.from + (same - 1) * theirs.stride + 1;
  if (s.low >= s.high) return ask_all(s.high, now);
  ask_for_search();
}

void call_comparison::ask_all(std::uint64_t number, time_point now) {
  m_search.reset();
  m_query = call_query{number, now + time_to_answer, std::vector<bool>(m_peers.size()), {}};
  answer(0, m_of.excerpt(number, 1, 1));
  for (int r = 1; r < m_size && m_query; ++r) request_calls(r, number, 1, 1);
}

void call_comparison::answer(int source, const call_excerpt& theirs) {
  if (theirs.from != m_query->number || m_query->answered[static_cast<std::size_t>(source)]) return;
  m_query->answered[static_cast<std::size_t>(source)] = true;
  if (theirs.count > 0) m_query->calls.push_back({source, theirs.histories[0], theirs.call});
  const auto& all = m_query->answered;
  if (std::all_of(all.begin(), all.end(), [](bool given) { return given; })) conclude();
}

void call_comparison::conclude() {
  std::vector<ranks_call>& calls = m_query->calls;
  std::sort(calls.begin(), calls.end(),
            [](const ranks_call& a, const ranks_call& b) { return a.rank < b.rank; });
  m_difference = calls.empty() ? "the ranks have called different operations"
                               : describe_difference(calls, calls.front().history);
  m_query.reset();
  m_found = true;
}

std::optional<std::string> call_comparison::take_difference() {
  return std::exchange(m_difference, std::nullopt);
}

}  // namespace sucl::core
