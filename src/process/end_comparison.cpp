// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "process/end_comparison.hpp"

#include "core/exchange/topology.hpp"
#include "core/operation/argument_comparison.hpp"
#include "core/operation/operation.hpp"
#include "core/record/record_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <type_traits>
#include <utility>

namespace sucl::core {
namespace {

// Plain data as text, and back.
template <class T>
std::string packed(const std::vector<T>& all) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(all.data()), all.size() * sizeof(T)};
}

template <class T>
std::vector<T> unpacked(const std::string& text) {
  std::vector<T> all(text.size() / sizeof(T));
  if (!all.empty())
    std::memcpy(static_cast<void*>(all.data()), text.data(), all.size() * sizeof(T));
  return all;
}

/// A call that the record has, or the same one several times.
struct compared_call {
  std::uint64_t number = 0, times = 0;
  std::uint64_t is_replay = 0;
  call_signature call;
};

/// Ranks of a communicator that have called the same, and what the first one's record has of it.
struct alike {
  call_totals totals;
  std::vector<int> ranks;
  std::vector<compared_call> calls;

  const compared_call* find(bool replay, std::uint64_t number) const {
    for (const compared_call& c : calls)
      if ((c.is_replay != 0) == replay && c.number <= number && number < c.number + c.times)
        return &c;
    return nullptr;
  }
  std::uint64_t last(bool replay) const { return replay ? totals.replays : totals.calls; }
};

std::uint64_t hash_of(const ended_calls& c) {
  std::uint64_t h = mix(mix(c.job, c.communicator), static_cast<std::uint64_t>(c.size));
  for (const auto part :
       {c.totals.calls, c.totals.replays, c.totals.call_history, c.totals.replay_history})
    h = mix(h, part);
  return h;
}

bool have_called_the_same(const std::vector<ended_calls>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(), [&](const ended_calls& c) {
    return c.totals.calls_like(ranks.front().totals);
  });
}

// What all ranks have of pairs adds up to 0.
bool have_equal_pairs(const std::vector<ended_calls>& ranks) {
  std::uint64_t sum = 0;
  for (const ended_calls& c : ranks) sum += c.totals.pairs;
  return sum == 0 || ranks.size() != static_cast<std::size_t>(ranks.front().size);
}

using of_communicator = std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<ended_calls>>;

// The first communicator whose ranks differ; by rank.
std::vector<ended_calls> first_that_differs(const std::vector<std::string>& texts) {
  of_communicator by_communicator;
  for (const std::string& text : texts)
    for (const ended_calls& c : unpacked<ended_calls>(text))
      by_communicator[{c.job, c.communicator}].push_back(c);
  for (auto& [id, ranks] : by_communicator) {
    const auto comparable = [](const ended_calls& c) { return c.comparable != 0; };
    if (!std::all_of(ranks.begin(), ranks.end(), comparable) ||
        (have_called_the_same(ranks) && have_equal_pairs(ranks)))
      continue;
    std::sort(ranks.begin(), ranks.end(),
              [](const ended_calls& a, const ended_calls& b) { return a.rank < b.rank; });
    return ranks;
  }
  return {};
}

std::vector<alike> groups_of(const std::vector<ended_calls>& ranks) {
  std::vector<alike> groups;
  for (const ended_calls& c : ranks) {
    auto g = std::find_if(groups.begin(), groups.end(),
                          [&](const alike& known) { return known.totals.calls_like(c.totals); });
    if (g == groups.end()) g = groups.insert(g, {c.totals, {}, {}});
    g->ranks.push_back(c.rank);
  }
  return groups;
}

std::vector<compared_call> calls_in(const flight_record& record, std::uint64_t communicator) {
  std::vector<compared_call> calls;
  for (const recorded_call& e : history_of(record).entries)
    if (e.communicator == communicator && !is_point_to_point(e.call.kind))
      calls.push_back(
          {e.number, e.times, origin_of(e.call.tag) == origin::replay ? 1u : 0u, e.call});
  return calls;
}

std::string times(std::uint64_t number, const char* what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

// Of calls with this number, if they differ: who has called what, or has ended before.
std::optional<std::string> difference_at(const std::vector<alike>& groups, bool replay,
                                         std::uint64_t number) {
  std::vector<ranks_call> calls;
  std::vector<int> ended;
  std::uint64_t after = 0;
  for (const alike& g : groups) {
    if (const compared_call* c = g.find(replay, number)) {
      for (const int r : g.ranks) calls.push_back({r, c->call.hash, c->call});
    } else if (g.last(replay) < number) {
      ended.insert(ended.end(), g.ranks.begin(), g.ranks.end());
      after = g.last(replay);
    }
  }
  if (calls.empty()) return std::nullopt;
  std::sort(calls.begin(), calls.end(),
            [](const ranks_call& a, const ranks_call& b) { return a.rank < b.rank; });
  const bool differ = std::any_of(calls.begin(), calls.end(), [&](const ranks_call& c) {
    return c.history != calls.front().history;
  });
  const std::string where = "operation " + std::to_string(number);
  if (differ) return where + ": " + describe_difference(calls, calls.front().history);
  if (ended.empty()) return std::nullopt;
  std::sort(ended.begin(), ended.end());
  std::vector<int> callers;
  for (const ranks_call& c : calls) callers.push_back(c.rank);
  return ranks_text(ended) + (ended.size() == 1 ? " has" : " have") + " ended it after " +
         times(after, replay ? "replay" : "operation") + ", and " + ranks_text(callers) +
         " called " + where + ": " + describe(calls.front().call);
}

// A mark among the notes of a rank.
constexpr std::int32_t forgotten_before = -1;

bool is_before(const pair_note& a, const pair_note& b) {
  return std::pair{a.is_replay, a.number} < std::pair{b.is_replay, b.number};
}

// What all ranks have of a call adds up to 0.
std::string first_unequal_pair(const std::vector<std::string>& texts) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, pair_note> sums;
  std::array<std::uint64_t, 2> first{};  // of the calls and the replays that all remember
  for (const std::string& text : texts)
    for (const pair_note& n : unpacked<pair_note>(text)) {
      if (n.kind == forgotten_before) {
        first[n.is_replay] = std::max(first[n.is_replay], n.number);
        continue;
      }
      pair_note& sum = sums[{n.is_replay, n.number}];
      const std::uint64_t before = sum.balance;
      sum = n;
      sum.balance += before;
    }
  for (const auto& [at, sum] : sums)
    if (sum.balance != 0 && sum.number >= first[sum.is_replay])
      return std::string(sum.is_replay ? "replay " : "operation ") + std::to_string(sum.number) +
             ", " + name(static_cast<kind>(sum.kind)) + ",";
  return "an alltoallv, gatherv or scatterv that is not remembered any more";
}

std::string how_many(const std::vector<alike>& groups) {
  std::string text;
  for (const alike& g : groups) {
    text += (text.empty() ? "" : ", ") + ranks_text(g.ranks) + " called " +
            times(g.totals.calls, "operation");
    if (g.totals.replays > 0) text += " and replayed " + std::to_string(g.totals.replays);
  }
  return text + ", of which some differ that are not recorded any more";
}

std::string describe_groups(const std::vector<alike>& groups) {
  for (const bool replay : {false, true}) {
    std::set<std::uint64_t> numbers;
    for (const alike& g : groups)
      for (const compared_call& c : g.calls) {
        if ((c.is_replay != 0) == replay) numbers.insert({c.number, c.number + c.times});
      }
    for (const std::uint64_t n : numbers)
      if (auto text = difference_at(groups, replay, n)) return *text;
  }
  return how_many(groups);
}

}  // namespace

void end_comparison::note(const ended_calls& c, const pair_log& pairs) {
  const std::lock_guard lock(m_mutex);
  // The weights of the ranks are 1, but for the last one's.
  const std::uint64_t weight = c.rank + 1 < c.size ? 1 : 1 - static_cast<std::uint64_t>(c.size);
  m_checksum.sum += weight * hash_of(c) + c.totals.pairs * (mix(c.job, c.communicator) | 1);
  if (!c.comparable) m_checksum.unsure = 1;
  m_pairs[m_checksum.ended % remembered] = pairs;
  m_last[m_checksum.ended++ % remembered] = c;
}

call_checksum end_comparison::checksum() const {
  const std::lock_guard lock(m_mutex);
  return m_checksum;
}

bool end_comparison::may_differ(const std::vector<call_checksum>& all) {
  std::uint64_t sum = 0;
  for (const call_checksum& c : all) sum += c.sum;
  return sum != 0;
}

std::optional<std::string> end_comparison::find_alone(const std::vector<call_checksum>& all) {
  const auto unsure = [](const call_checksum& c) { return c.unsure != 0; };
  if (!may_differ(all) || std::any_of(all.begin(), all.end(), unsure)) return std::nullopt;
  return "ranks have called different operations, as this process sees at its end; the others have "
         "ended before, so that only SUCL_VALIDATE=1 or SUCL_TIMEOUT finds which";
}

std::vector<ended_calls> end_comparison::last() const {
  const std::lock_guard lock(m_mutex);
  const auto kept =
      static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(m_checksum.ended, remembered));
  return {m_last.begin(), m_last.begin() + kept};
}

// Of the calls in which the ranks of a communicator have not given each other the same counts the
// first that all ranks remember. Collective, as find().
std::string end_comparison::find_pair(const sucl_oob& oob, int processes,
                                      const ended_calls& of) const {
  std::vector<pair_note> own;
  {
    const std::lock_guard lock(m_mutex);
    for (std::size_t i = 0; i < std::min<std::uint64_t>(m_checksum.ended, remembered); ++i) {
      if (m_last[i].job != of.job || m_last[i].communicator != of.communicator) continue;
      const auto& notes = m_pairs[i].notes();
      own.insert(own.end(), notes.begin(), notes.end());
      if (m_pairs[i].complete()) continue;
      // Where it has forgotten some, those up to the first that it still knows.
      pair_note first = *std::min_element(notes.begin(), notes.end(), is_before);
      first.kind = forgotten_before;
      own.push_back(first);
    }
  }
  return first_unequal_pair(exchange(oob, processes, packed(own)));
}

std::optional<std::string> end_comparison::find(const sucl_oob& oob,
                                                const std::vector<call_checksum>& all,
                                                const record_finder& record) const {
  const int processes = static_cast<int>(all.size());
  const std::vector<ended_calls> own = last();
  const auto ranks = first_that_differs(exchange(oob, processes, packed(own)));
  if (ranks.empty()) {
    const auto sure = [](const call_checksum& c) { return c.unsure == 0; };
    const auto complete = [](const call_checksum& c) { return c.ended <= remembered; };
    if (!std::all_of(all.begin(), all.end(), sure) || std::all_of(all.begin(), all.end(), complete))
      return std::nullopt;
    return "the ranks of a communicator that has ended long ago have called different operations";
  }
  const std::string who = "communicator " + std::to_string(ranks.front().communicator) +
                          " has ended, but its ranks have not called the same: ";
  if (have_called_the_same(ranks))
    return who + "in " + find_pair(oob, processes, ranks.front()) +
           " two of them have given different counts for each other, and SUCL_VALIDATE=1 tells "
           "which";
  auto groups = groups_of(ranks);
  // One of each group says what it has called.
  for (alike& g : groups) {
    const auto speaker = std::find_if(own.begin(), own.end(), [&](const ended_calls& c) {
      return c.job == ranks.front().job && c.communicator == ranks.front().communicator &&
             c.rank == g.ranks.front();
    });
    const flight_record* const known = speaker == own.end() ? nullptr : record(*speaker);
    if (known) g.calls = calls_in(*known, speaker->communicator);
    constexpr std::size_t first_ones = 4;
    if (static_cast<std::size_t>(&g - groups.data()) >= first_ones) continue;
    for (const std::string& text : exchange(oob, processes, packed(g.calls)))
      if (!text.empty()) g.calls = unpacked<compared_call>(text);
  }
  return who + describe_groups(groups);
}

}  // namespace sucl::core
