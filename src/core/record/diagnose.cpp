// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/record/diagnose.hpp"

#include "base/error.hpp"
#include "core/operation/argument_comparison.hpp"
#include "core/operation/operation.hpp"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace sucl::core {
namespace {

bool is_message(const recorded_call& e) { return is_point_to_point(e.call.kind); }

// Operations that were given up are not over: their rank has waited in them.
bool is_over(const recorded_call& e) {
  return e.state == record_state::done || e.state == record_state::enqueued;
}

std::uint64_t last_number(const recorded_call& e) { return e.number + e.times - 1; }

// The collectives of a communicator that one rank has called, or replayed, in their order.
struct rank_calls {
  const rank_history* history = nullptr;
  std::vector<const recorded_call*> calls;

  std::uint64_t last() const {
    std::uint64_t n = 0;
    for (const auto* e : calls) n = std::max(n, last_number(*e));
    return n;
  }
  const recorded_call* find(std::uint64_t number) const {
    for (const auto* e : calls)
      if (e->number <= number && number <= last_number(*e)) return e;
    return nullptr;
  }
  // The first one that is not over.
  const recorded_call* open() const {
    const recorded_call* first = nullptr;
    for (const auto* e : calls)
      if (!is_over(*e) && (!first || e->number < first->number)) first = e;
    return first;
  }
};

// The calls or replays of one communicator.
struct stream {
  std::uint64_t communicator = 0;
  int size = 0;
  std::map<int, rank_calls> ranks;  // by rank in the communicator: those that have left a record

  std::string name() const { return "communicator " + std::to_string(communicator); }
};

using streams = std::map<std::pair<std::uint64_t, bool>, stream>;

streams sort_by_stream(const std::vector<rank_history>& histories) {
  streams all;
  for (const rank_history& h : histories) {
    std::map<std::uint64_t, int> own;
    for (const record_member& m : h.members) {
      own[m.communicator] = m.rank;
      for (const bool replays : {false, true}) {
        stream& s = all[{m.communicator, replays}];
        s.communicator = m.communicator;
        s.size = m.size;
        s.ranks[m.rank].history = &h;
      }
    }
    for (const recorded_call& e : h.entries) {
      const auto known = own.find(e.communicator);
      if (is_message(e) || known == own.end()) continue;
      const bool replay = origin_of(e.call.tag) == origin::replay;
      all[{e.communicator, replay}].ranks[known->second].calls.push_back(&e);
    }
  }
  return all;
}

std::string number_text(std::uint64_t n) { return "#" + std::to_string(n); }

std::string call_text(const stream& s, std::uint64_t number, const call_signature& c) {
  return describe(c) + ", " + number_text(number) + " of " + s.name();
}

// ---- ranks that have called something else

std::optional<std::string> mismatch_in(const stream& s) {
  std::set<std::uint64_t> numbers;
  for (const auto& [rank, r] : s.ranks)
    for (const auto* e : r.calls) numbers.insert({e->number, last_number(*e)});
  for (const std::uint64_t n : numbers) {
    std::vector<ranks_call> calls;
    bool differ = false;
    for (const auto& [rank, r] : s.ranks) {
      const recorded_call* e = r.find(n);
      if (!e) continue;
      calls.push_back({rank, e->call.hash, e->call});
      differ = differ || e->call.hash != calls.front().call.hash;
    }
    if (differ)
      return "call " + number_text(n) + " of " + s.name() +
             " is not the same on all ranks: " + describe_difference(calls, calls.front().history);
  }
  return std::nullopt;
}

// ---- ranks that wait, and for whom

struct waiting {
  std::uint64_t number = 0;
  call_signature call;
  std::vector<int> inside, late, missing;
  std::vector<int> held;  // of those inside: what their call depends on is not done
};

std::optional<waiting> waiting_in(const stream& s) {
  waiting w;
  std::uint64_t least = s.ranks.size() < static_cast<std::size_t>(s.size) ? 0 : ~std::uint64_t{0};
  for (const auto& [rank, r] : s.ranks) least = std::min(least, r.last());
  const recorded_call* first = nullptr;
  // One that not all have called goes before one that all have, and is about to end.
  const auto precedes = [&](std::uint64_t number) {
    if (!first) return true;
    const bool lacks = number > least, known_lacks = w.number > least;
    return lacks != known_lacks ? lacks : number < w.number;
  };
  for (const auto& [rank, r] : s.ranks)
    if (const auto* e = r.open(); e && precedes(last_number(*e))) {
      first = e;
      w.number = last_number(*e);
    }
  // For operations on a device's stream only the ranks that have not enqueued them are known.
  for (const auto& [rank, r] : s.ranks)
    if (const auto* e = first ? nullptr : r.find(least + 1);
        e && e->state == record_state::enqueued) {
      first = e;
      w.number = least + 1;
    }
  if (!first) return std::nullopt;
  w.call = first->call;
  for (int r = 0; r < s.size; ++r) {
    const auto known = s.ranks.find(r);
    if (known == s.ranks.end()) {
      w.missing.push_back(r);
    } else if (known->second.last() < w.number) {
      w.late.push_back(r);
    } else if (const auto* e = known->second.find(w.number); e && e->state != record_state::done) {
      w.inside.push_back(r);
      if (e->state == record_state::issued) w.held.push_back(r);
    }
  }
  return w;
}

const char* are(const std::vector<int>& ranks) { return ranks.size() == 1 ? " is " : " are "; }
const char* have(const std::vector<int>& ranks) { return ranks.size() == 1 ? " has " : " have "; }

// The ranks; of a single one also its process and host, where the user can look.
std::string ranks_and_process(const stream& s, const std::vector<int>& ranks) {
  std::string text = ranks_text(ranks);
  if (ranks.size() != 1) return text;
  const rank_history& h = *s.ranks.at(ranks.front()).history;
  const std::string in_job =
      h.rank == ranks.front() ? "" : "rank " + std::to_string(h.rank) + " of the job, ";
  return text + " (" + in_job + "process " + std::to_string(h.process) + " on " + h.host + ")";
}

std::string waits_text(const stream& s, const waiting& w) {
  return ranks_text(w.inside) + (w.inside.size() == 1 ? " waits in " : " wait in ") +
         call_text(s, w.number, w.call);
}

const recorded_call* open_entry(const rank_history& h, std::uint64_t besides) {
  for (const recorded_call& e : h.entries)
    if (!is_over(e) && e.communicator != besides) return &e;
  return nullptr;
}

const recorded_call* open_message(const rank_history& h) {
  for (const recorded_call& e : h.entries)
    if (is_message(e) && !is_over(e)) return &e;
  return nullptr;
}

std::string message_text(const recorded_call& e) {
  if (e.call.kind == SUCL_KIND_GROUP)
    return "a group of " + std::to_string(e.call.count) + " messages";
  std::string text = describe(e.call);
  if (e.peer >= 0) text += " to rank " + std::to_string(e.peer);
  if (e.source >= 0) text += " from rank " + std::to_string(e.source);
  return text + " with tag " + std::to_string(e.message_tag);
}

// In which other operation a rank is that others wait for.
std::string elsewhere(const rank_history& h, std::uint64_t besides) {
  const recorded_call* e = open_entry(h, besides);
  if (!e) e = open_message(h);
  if (!e) return {};
  if (is_message(*e)) return "it waits in " + message_text(*e);
  return "it waits in " + describe(e->call) + ", " + number_text(last_number(*e)) +
         " of communicator " + std::to_string(e->communicator);
}

std::string last_call(const stream& s, int rank) {
  const rank_calls& r = s.ranks.at(rank);
  const std::uint64_t last = r.last();
  const recorded_call* e = r.find(last);
  if (!e) return "it has called nothing there";
  return "its last call there was " + number_text(last) + ", " + describe(e->call);
}

std::string missing_text(const stream& s, const waiting& w) {
  return ranks_text(w.missing) + are(w.missing) +
         "missing: " + (w.missing.size() == 1 ? "it has" : "they have") +
         " left no record, as a process that was killed, and " + waits_text(s, w);
}

std::string late_text(const stream& s, const waiting& w) {
  std::string text = ranks_and_process(s, w.late) + are(w.late) + "late: " + waits_text(s, w) +
                     ", which " + ranks_text(w.late) + have(w.late) + "not called";
  if (w.late.size() != 1) return text;
  const std::string where = elsewhere(*s.ranks.at(w.late.front()).history, s.communicator);
  return text + "; " + (where.empty() ? last_call(s, w.late.front()) : where);
}

// A rank that waits for nothing is the cause of all other waiting.
bool has_cause(const stream& s, const waiting& w) {
  return !w.missing.empty() || std::any_of(w.late.begin(), w.late.end(), [&](int r) {
    const rank_history& h = *s.ranks.at(r).history;
    return !open_entry(h, s.communicator) && !open_message(h);
  });
}

// ---- messages

std::optional<std::string> message_trouble(const streams& all) {
  for (const auto& [key, s] : all) {
    if (key.second) continue;
    for (const auto& [rank, r] : s.ranks)
      for (const recorded_call& e : r.history->entries) {
        if (e.communicator != s.communicator || !is_message(e) || is_over(e)) continue;
        const int peer = e.source >= 0 ? e.source : e.peer;
        std::string waiting_text =
            "rank " + std::to_string(rank) + " of " + s.name() + " waits in " + message_text(e);
        if (peer < 0 || e.call.kind == SUCL_KIND_GROUP) return waiting_text;
        const std::string other = "rank " + std::to_string(peer);
        const auto known = s.ranks.find(peer);
        if (known == s.ranks.end())
          return other + " is missing: it has left no record, as a process that was killed, and " +
                 waiting_text;
        const std::string where = elsewhere(*known->second.history, ~std::uint64_t{0});
        return other + " has not issued the matching operation: " + waiting_text +
               (where.empty() ? ", and " + other + " waits in nothing"
                              : ", and of " + other + ": " + where);
      }
  }
  return std::nullopt;
}

// ---- all together

bool is_crash(int number) {
  return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
         number == SIGABRT;
}

void check(const std::vector<rank_history>& ranks) {
  std::set<int> seen;
  for (const rank_history& h : ranks) {
    if (h.job != ranks.front().job)
      base::fail(errc::invalid_argument,
                 "'" + ranks.front().file + "' and '" + h.file + "' are of different jobs",
                 "Name the records of one job; remove those of earlier ones");
    if (!seen.insert(h.rank).second)
      base::fail(errc::invalid_argument,
                 "'" + h.file + "' is a second record of rank " + std::to_string(h.rank),
                 "Name one for each rank");
  }
}

std::optional<std::string> crash_in(const std::vector<rank_history>& ranks, const streams& all) {
  for (const rank_history& h : ranks) {
    // abort() also ends programs after an error; such a record has the failure.
    if (!is_crash(h.signal) || (h.signal == SIGABRT && !h.failure.empty())) continue;
    std::string text = "rank " + std::to_string(h.rank) + " of the job was ended by signal " +
                       std::to_string(h.signal) + " (" + strsignal(h.signal) + ")";
    for (const auto& [key, s] : all)
      if (const auto w = waiting_in(s); w && !w->inside.empty()) {
        text += "; " + waits_text(s, *w);
        break;
      }
    return text;
  }
  return std::nullopt;
}

std::optional<std::string> first_failure(const std::vector<rank_history>& ranks) {
  for (const rank_history& h : ranks)
    if (!h.failure.empty())
      return "rank " + std::to_string(h.rank) + " of the job has failed: " + h.failure;
  return std::nullopt;
}

std::string no_problem_text(const std::vector<rank_history>& ranks) {
  std::string text = "no rank waits for another one";
  const int size = ranks.front().size;
  if (static_cast<int>(ranks.size()) < size)
    text += ", of the " + std::to_string(ranks.size()) + " of " + std::to_string(size) +
            " ranks whose records there are";
  return text;
}

std::optional<std::string> waiting_text(const streams& all) {
  std::optional<std::string> circle;
  for (const auto& [key, s] : all) {
    const auto w = waiting_in(s);
    if (!w || w->inside.empty() || (w->late.empty() && w->missing.empty())) continue;
    if (!w->missing.empty()) return missing_text(s, *w);
    if (has_cause(s, *w)) return late_text(s, *w);
    if (!circle) circle = late_text(s, *w);
  }
  if (const auto message = message_trouble(all)) return message;
  return circle;
}

std::optional<std::string> stuck_text(const streams& all) {
  for (const auto& [key, s] : all) {
    const auto w = waiting_in(s);
    if (!w || w->inside.empty()) continue;
    const std::string call = call_text(s, w->number, w->call);
    if (w->held.empty())
      return "all ranks have called " + call + ", and " + ranks_text(w->inside) + have(w->inside) +
             "not finished it: the network, or the backend, makes no progress";
    return ranks_and_process(s, w->held) + have(w->held) + "called " + call +
           ", but not begun it: what it depends on is not done there";
  }
  return std::nullopt;
}

}  // namespace

record_diagnosis diagnose(const std::vector<rank_history>& ranks) {
  if (ranks.empty())
    base::fail(errc::invalid_argument, "there is no record to diagnose", "Name one for each rank");
  check(ranks);
  const streams all = sort_by_stream(ranks);
  for (const auto& [key, s] : all)
    if (auto text = mismatch_in(s)) return {true, std::move(*text)};
  if (auto text = crash_in(ranks, all)) return {true, std::move(*text)};
  if (auto text = waiting_text(all)) return {true, std::move(*text)};
  if (auto text = first_failure(ranks)) return {true, std::move(*text)};
  if (auto text = stuck_text(all)) return {true, std::move(*text)};
  return {false, no_problem_text(ranks)};
}

}  // namespace sucl::core
