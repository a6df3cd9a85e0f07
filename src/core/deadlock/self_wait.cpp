// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/deadlock/self_wait.hpp"

#include "base/log.hpp"
#include "base/threads/thread_state.hpp"
#include "core/communicator/communicator.hpp"
#include "core/control/process_context.hpp"
#include "core/deadlock/circle_search.hpp"
#include "core/operation/argument_comparison.hpp"
#include "core/record/flight_recorder.hpp"
#include "core/record/record_signals.hpp"
#include "core/support/forked.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <set>

namespace sucl::core {
namespace {

using namespace std::chrono_literals;

// Held while the ranks are looked at, so that none of them ends meanwhile.
std::mutex g_local_ranks_mutex;
std::vector<local_rank> g_local_ranks;

// For a thread that computes, before it makes the call that is missing.
constexpr auto time_to_compute = 30s;

constexpr const char* cure =
    "Call the forms that return events, a sucl::group or sucl::each_rank where one thread serves "
    "several ranks";

std::shared_ptr<communicator> find_communicator(
    const local_rank& r, const std::function<bool(const communicator&)>& is_it) {
  std::shared_ptr<communicator> found;
  r.each([&](const std::shared_ptr<communicator>& c) {
    if (!found && c->alive() && is_it(*c)) found = c;
  });
  return found;
}

// Whether a call of `rank` cannot end before `other` has called the same. What is empty may, and so
// may calls whose counts are not known here, or that need another rank's data.
bool needs(const record_entry& e, int rank, int other) {
  if (e.kind == SUCL_KIND_BARRIER || is_point_to_point(e.kind)) return true;
  if (e.count == 0) return false;
  switch (e.kind) {
    case SUCL_KIND_ALLREDUCE:
    case SUCL_KIND_REDUCE_SCATTER_BLOCK:
    case SUCL_KIND_ALLGATHER:
    case SUCL_KIND_ALLTOALL: return true;
    case SUCL_KIND_REDUCE:
    case SUCL_KIND_GATHER: return rank == e.root;
    case SUCL_KIND_BROADCAST:
    case SUCL_KIND_SCATTER: return other == e.root;
    case SUCL_KIND_SCAN:
    case SUCL_KIND_EXSCAN: return other < rank;
    default: return false;
  }
}

// A blocking call, and the ranks of this process that it waits for.
struct waiting_call {
  std::shared_ptr<communicator> in;
  std::vector<std::shared_ptr<communicator>> siblings;
  std::vector<int> missing;                 // ranks of the communicator
  std::vector<const local_rank*> who_lack;  // the same
  bool needs_one = false;                   // of them
};

waiting_call call_of(const local_rank& rank, const record_entry& e) {
  waiting_call call;
  call.in = find_communicator(rank, [&](const communicator& c) {
    return e.communicator == static_cast<std::uint32_t>(c.id());
  });
  if (!call.in) return call;
  communicator& c = *call.in;
  circle_message m;
  set_call(m, e, e.repeats.load(std::memory_order_relaxed), c);
  const bool is_message = m.kind == SUCL_KIND_GROUP || is_point_to_point(m.kind);
  const int peer = is_message ? only_peer(c, e) : -1;
  const std::vector<int>& members = c.where().world_ranks;
  for (const local_rank& other : g_local_ranks) {
    if (&other == &rank || other.context->key() != rank.context->key()) continue;
    const auto at = std::find(members.begin(), members.end(), other.context->rank());
    if (at == members.end() || !other.context->record().memory()) continue;
    const auto its =
        find_communicator(other, [&](const communicator& o) { return o.id() == c.id(); });
    if (!its) continue;
    call.siblings.push_back(its);
    const int r = static_cast<int>(at - members.begin());
    if ((is_message && r != peer) || !lacks_call(*other.context, *its, m)) continue;
    call.missing.push_back(r);
    call.needs_one |= needs(e, c.rank(), r);
    call.who_lack.push_back(&other);
  }
  return call;
}

// Whether all that a rank has called was called by that thread, or by some that have ended.
bool is_served_by(const local_rank& rank, std::int32_t thread) {
  flight_recorder& record = rank.context->record();
  std::set<std::int32_t> callers;
  for (std::size_t i = 0; i < record.memory()->entries.size(); ++i)
    if (record.memory()->entries[i].serial.load(std::memory_order_acquire) != 0)
      callers.insert(record.caller_of(i));
  return std::all_of(callers.begin(), callers.end(),
                     [&](std::int32_t t) { return t == thread || (t != 0 && !base::lives(t)); });
}

bool is_any_served_by(const waiting_call& call, std::int32_t thread) {
  return std::any_of(call.who_lack.begin(), call.who_lack.end(),
                     [&](const local_rank* r) { return is_served_by(*r, thread); });
}

std::string missing_text(const record_entry& e, const waiting_call& call) {
  return describe_call(e, *call.in) + ", which " + ranks_text(call.missing) +
         (call.missing.size() == 1 ? " of its process has" : " of its process have") +
         " not called";
}

diagnosis error_of(const record_entry& e, const waiting_call& call) {
  return {errc::timeout, "rank " + std::to_string(call.in->rank()) + " waits for itself in " +
                             missing_text(e, call) +
                             ": the thread that waits is the only one left to make calls. " + cure};
}

// Of a call that may end without those that are missing too.
std::string warning_of(const record_entry& e, const waiting_call& call) {
  return "rank " + std::to_string(call.in->rank()) + " has waited for seconds in " +
         missing_text(e, call) + ". Where no other thread is about to, the call " +
         (call.needs_one ? "waits" : "may wait") + " for itself. " + cure;
}

// Notified late, a thread of the program may go on.
bool has_undelivered(const local_rank& r) {
  bool any = false;
  r.each([&](const std::shared_ptr<communicator>& c) { any = any || c->has_undelivered(); });
  return any;
}

auto key_of(const record_entry& e) {
  return std::pair{&e, std::pair{e.serial.load(std::memory_order_acquire),
                                 e.repeats.load(std::memory_order_relaxed)}};
}

// Threads of SuCL's that call nothing of the program. What others are named after the one that has
// made them, so threads that call into SYCL are known by their numbers.
bool serves_control_plane(std::int32_t thread) {
  constexpr std::array names{"sucl-tcp", "sucl-setup", "sucl-requests"};
  const std::string name = base::name_of_thread(thread);
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

local_rank_entry::local_rank_entry(local_rank r) : m_of(r.context) {
  const std::lock_guard lock(g_local_ranks_mutex);
  g_local_ranks.push_back(std::move(r));
}

// A thread of the parent may have held the mutex while it forked.
local_rank_entry::~local_rank_entry() {
  if (forked()) return;
  const std::lock_guard lock(g_local_ranks_mutex);
  std::erase_if(g_local_ranks, [&](const local_rank& r) { return r.context == m_of; });
}

// What the process is like if no thread of it will make another call; else nothing. A thread whose
// trace is the same the next time has slept all the while, so all have at once.
std::optional<self_wait_search::stillness> self_wait_search::look() const {
  stillness s;
  std::set<std::int32_t> excepted;
  for (const local_rank& r : g_local_ranks) {
    for (const std::int32_t own : r.own_threads())
      if (own != 0) excepted.insert(own);
    flight_recorder& record = r.context->record();
    if (!record.memory()) return std::nullopt;
    for (std::size_t i = 0; i < record.memory()->entries.size(); ++i) {
      const record_entry& e = record.memory()->entries[i];
      const auto state = e.state.load(std::memory_order_acquire);
      if (!is_open(state) && state != record_state::enqueued) continue;
      if (!waits_in_call(e) || !call_of(r, e).needs_one) return std::nullopt;
      s.callers[key_of(e)] = record.caller_of(i);
      excepted.insert(record.caller_of(i));
    }
  }
  if (std::any_of(g_local_ranks.begin(), g_local_ranks.end(), has_undelivered) ||
      handles_signals_from_outside())
    return std::nullopt;
  const auto threads = base::threads_of_process();
  if (threads.empty()) return std::nullopt;
  for (const std::int32_t t : threads) {
    if (excepted.count(t) != 0 || serves_control_plane(t)) continue;
    std::string trace = base::trace_of_thread(t);
    if (!base::sleeps(trace) || !base::waits_for_own_thread(t)) return std::nullopt;
    s.traces.emplace(t, std::move(trace));
  }
  return s;
}

bool self_wait_search::may_warn(const call_key& call, clock::time_point now, bool quiet) {
  const auto seen = m_seen.try_emplace(call, now).first->second;
  return quiet || now - seen >= time_to_compute;
}

std::vector<self_wait_search::finding> self_wait_search::poll(
    const std::vector<std::size_t>& entries, clock::time_point now, bool quiet) {
  std::vector<finding> found;
  if (entries.empty()) {
    m_last.reset();
    m_reported.clear();
    m_seen.clear();
    return found;
  }
  const std::lock_guard lock(g_local_ranks_mutex);
  const auto own = std::find_if(g_local_ranks.begin(), g_local_ranks.end(),
                                [&](const local_rank& r) { return r.context == &m_owner; });
  if (own == g_local_ranks.end()) return found;
  std::map<std::size_t, waiting_call> calls;
  for (const std::size_t i : entries) {
    const record_entry& e = m_owner.record().memory()->entries[i];
    if (!waits_in_call(e)) continue;
    if (waiting_call call = call_of(*own, e); !call.missing.empty()) calls.emplace(i, call);
  }
  const auto before = std::exchange(m_last, calls.empty() ? std::nullopt : look());
  for (auto& [i, call] : calls) {
    const record_entry& e = m_owner.record().memory()->entries[i];
    const auto reported = m_reported.find(key_of(e));
    if (call.needs_one && m_last && before == m_last) {
      if (reported != m_reported.end() && reported->second) continue;
      m_reported[key_of(e)] = true;
      found.push_back({call.in, std::move(call.siblings), error_of(e, call)});
      continue;
    }
    const bool may_be_proved = m_last && !before;  // by one look more
    if (reported != m_reported.end() || may_be_proved) continue;
    if (!is_any_served_by(call, m_owner.record().caller_of(i))) continue;
    if (!may_warn(key_of(e), now, quiet)) continue;
    m_reported[key_of(e)] = false;
    base::log(base::log_level::warn, "watchdog", warning_of(e, call));
  }
  return found;
}

}  // namespace sucl::core
