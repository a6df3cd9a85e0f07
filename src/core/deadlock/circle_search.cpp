// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/deadlock/circle_search.hpp"

#include "base/log.hpp"
#include "base/threads/thread_state.hpp"
#include "core/communicator/communicator.hpp"
#include "core/control/process_context.hpp"
#include "core/operation/operation.hpp"
#include "core/record/flight_recorder.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace sucl::core {
namespace {

using namespace std::chrono_literals;

constexpr auto long_wait = 2s;
// A message is of use while the waits on its path last.
constexpr auto time_to_pass_on = 2s;
constexpr auto longest_interval = 60s;

std::string text_of(const circle_message& m) {
  return std::string(m.text.data(), strnlen(m.text.data(), m.text.size()));
}

void set_text(circle_message& m, const std::string& text) {
  m.text = {};
  text.copy(m.text.data(), m.text.size() - 1);
}

std::string rank_text(int rank) { return "rank " + std::to_string(rank); }

bool is_single_message(std::int32_t kind) {
  return kind == SUCL_KIND_SEND || kind == SUCL_KIND_RECV;
}

bool is_posted(const record_entry& e) {
  return e.state.load(std::memory_order_acquire) == record_state::posted;
}

bool is_blocking_call(const record_entry& e) {
  return is_point_to_point(e.kind) ? e.number == blocking_message : is_blocking(e.kind, e.tag);
}

// Whether an operation of this rank may be the other side of that message, or of one of those.
bool may_match(const record_entry& e, const circle_message& m) {
  const auto state = e.state.load(std::memory_order_acquire);
  if (!is_open(state) && state != record_state::enqueued) return false;
  if (e.kind == SUCL_KIND_GROUP) return true;
  const bool receives = e.kind != SUCL_KIND_SEND && e.source == m.sender;
  const bool sends = e.kind != SUCL_KIND_RECV && e.root == m.sender;
  const bool fits = (m.kind != SUCL_KIND_RECV && receives) || (m.kind != SUCL_KIND_SEND && sends);
  return fits && (e.tag == m.tag || m.kind == SUCL_KIND_GROUP);
}

// What is missing, of `who`.
std::string missing(const circle_message& m, const std::string& who) {
  if (is_point_to_point(m.kind) && !is_single_message(m.kind))
    return ", of which " + who + " has not called the other side";
  return ", which " + who +
         (!is_point_to_point(m.kind) ? " has not called"
          : m.kind == SUCL_KIND_SEND ? " does not receive"
                                     : " does not send");
}

}  // namespace

// Whether nothing of the process has used much of a processor since the last poll.
bool circle_search::is_quiet(clock::time_point now) {
  constexpr int little = 10;  // one in so many
  const auto used = base::processor_time();
  const auto since = std::exchange(m_last_poll, now);
  return (used - std::exchange(m_used, used)) * little < now - since;
}

// Since the last poll, without a pause.
bool circle_search::is_blocked(std::int32_t thread) {
  auto at = m_traces.find(thread);
  if (at == m_traces.end()) at = m_traces.emplace(thread, base::trace_of_thread(thread)).first;
  const auto last = m_last_traces.find(thread);
  return base::sleeps(at->second) && last != m_last_traces.end() && last->second == at->second &&
         base::waits_for_thread(thread);
}

circle_search::wait_kind circle_search::waits_in(std::size_t index) {
  const record_entry& e = m_owner.record().memory()->entries[index];
  if (!is_posted(e)) return wait_kind::none;
  if (is_blocking_call(e)) return wait_kind::in_call;
  const bool blocked = is_blocked(m_owner.record().caller_of(index));  // notes its trace
  return blocked && m_quiet ? wait_kind::for_event : wait_kind::none;
}

bool circle_search::poll(clock::time_point now) {
  const flight_record* const record = m_owner.record().memory();
  if (!record) return false;
  m_quiet = is_quiet(now);
  m_last_traces = std::exchange(m_traces, {});
  for (std::size_t i = 0; i < record->entries.size(); ++i) {
    const record_entry& e = record->entries[i];
    const wait_kind how = waits_in(i);
    if (how == wait_kind::none) {
      m_waits.erase(i);
      continue;
    }
    wait& w = m_waits[i];
    const std::uint64_t serial = e.serial.load(std::memory_order_acquire);
    const std::uint32_t repeats = e.repeats.load(std::memory_order_relaxed);
    if (w.serial == serial && w.repeats == repeats) continue;
    w = {serial, repeats, now, {now + long_wait, long_wait}, how == wait_kind::for_event};
  }
  m_steps = m_owner.steps().waits_since(now - long_wait);
  if (m_steps.empty()) m_step_schedules.clear();
  if (waits(now)) return true;
  m_reported = false;
  m_seen.clear();
  m_passed_on.clear();
  return false;
}

bool circle_search::waits(clock::time_point now) const {
  return !m_steps.empty() || std::any_of(m_waits.begin(), m_waits.end(), [&](const auto& w) {
    return now - w.second.since >= long_wait;
  });
}

std::vector<std::size_t> circle_search::long_calls(clock::time_point now) const {
  std::vector<std::size_t> found;
  for (const auto& [index, w] : m_waits)
    if (!w.for_event && now - w.since >= long_wait) found.push_back(index);
  return found;
}

bool waits_in_call(const record_entry& e) { return is_posted(e) && is_blocking_call(e); }

std::string describe_call(const record_entry& e, const communicator& c) {
  sucl_operation o = recorded_operation(e);
  o.sequence = e.number + e.repeats.load(std::memory_order_relaxed);
  return describe(o) + " of " + c.label();
}

int only_peer(communicator& c, const record_entry& e) {
  if (!is_point_to_point(e.kind) || e.communicator != static_cast<std::uint32_t>(c.id())) return -1;
  if (e.kind == SUCL_KIND_SEND) return e.root;
  if (e.kind == SUCL_KIND_RECV) return e.source;
  if (e.kind == SUCL_KIND_SENDRECV) return e.root == e.source ? e.root : -1;
  const auto state = c.try_snapshot();
  const bool oldest =
      state && state->busy && state->oldest.kind == e.kind && state->peers.size() == 1;
  return oldest ? state->peers.front() : -1;
}

// Whether an operation can end by what this rank calls alone.
static bool is_with_itself(communicator& c, const record_entry& e) {
  return only_peer(c, e) == c.rank();
}

// Whether the wait is for this operation: for a call surely; for an event if no other operation of
// this rank may end before. Of several messages it is not known which one is missing, so all must
// be to and from one rank.
bool circle_search::may_be_sent(communicator& c, std::size_t index, const wait& w) const {
  const auto& entries = m_owner.record().memory()->entries;
  const record_entry& e = entries[index];
  const bool with_itself = is_with_itself(c, e);
  const bool several = is_point_to_point(e.kind) && !is_single_message(e.kind);
  if (several && only_peer(c, e) < 0) return false;
  const bool is_known = !several || (e.kind == SUCL_KIND_SENDRECV && !with_itself);
  if (!w.for_event && is_known) return c.entered() || c.assisted();
  if (!c.where().device_memory_everywhere_on_host) return false;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (i != index && is_open(entries[i].state.load(std::memory_order_acquire)) &&
        !(with_itself && is_single_message(entries[i].kind) && is_with_itself(c, entries[i])))
      return false;
  return true;
}

// What others have sent and this rank has not passed on along this wait, and now and then a message
// of its own.
template <class Along>
std::vector<circle_message> circle_search::take_due(schedule& s, clock::time_point now,
                                                    Along&& along) {
  std::vector<circle_message> due;
  for (passed_on& p : m_passed_on)
    if (along(p)) due.push_back(p.message);
  if (now < s.next) return due;
  s.next = now + s.interval;
  s.interval = std::min<std::chrono::nanoseconds>(2 * s.interval, longest_interval);
  circle_message first;
  first.origin = first.lowest = m_owner.rank();
  first.probe = ++m_probes;
  due.push_back(first);
  return due;
}

void circle_search::send(communicator& c, std::uint32_t what, clock::time_point now,
                         const sender& to) {
  if (m_waits.empty() && m_steps.empty()) return;
  std::erase_if(m_passed_on, [&](const passed_on& p) { return now - p.since > time_to_pass_on; });
  send_calls(c, what, now, to);
  send_steps(c, what, now, to);
}

void circle_search::send_calls(communicator& c, std::uint32_t what, clock::time_point now,
                               const sender& to) {
  const flight_record& record = *m_owner.record().memory();
  for (auto& [index, w] : m_waits) {
    const record_entry& e = record.entries[index];
    if (e.communicator != static_cast<std::uint32_t>(c.id()) || now - w.since < long_wait ||
        !is_posted(e) || e.serial.load(std::memory_order_acquire) != w.serial ||
        !may_be_sent(c, index, w))
      continue;
    const std::string call = rank_text(m_owner.rank()) + " waits in " + describe_call(e, c);
    if (is_with_itself(c, e)) {
      report_wait_for_itself(c, e, call);
      continue;
    }
    const auto along = [&](passed_on& p) { return p.along.insert(index).second; };
    for (circle_message m : take_due(w.again, now, along)) {
      m.what = what;
      set_call(m, e, w.repeats, c);
      set_text(m, text_of(m) + call);
      for (int r = 0; r < c.size(); ++r)
        if (r != c.rank() && (!is_point_to_point(e.kind) || r == only_peer(c, e))) to(r, m);
    }
  }
}

// Any communicator leads to its members.
void circle_search::send_steps(communicator& c, std::uint32_t what, clock::time_point now,
                               const sender& to) {
  for (const setup_steps::long_wait& step : m_steps) {
    const step_path path{step.label, c.id()};
    schedule& again = m_step_schedules.try_emplace(path, schedule{now, long_wait}).first->second;
    const auto along = [&](passed_on& p) { return p.along_steps.insert(path).second; };
    for (circle_message m : take_due(again, now, along)) {
      m.what = what;
      m.number = step.number;
      m.kind = circle_message::step_kind;
      m.step = {};
      step.what.copy(m.step.data(), m.step.size() - 1);
      set_text(m, text_of(m) + rank_text(m_owner.rank()) + " waits in " + step.label);
      for (int r = 0; r < c.size(); ++r) {
        const int rank = c.where().world_ranks[static_cast<std::size_t>(r)];
        const auto& all = step.members;
        if (r != c.rank() && std::find(all.begin(), all.end(), rank) != all.end()) to(r, m);
      }
    }
  }
}

void circle_search::report_wait_for_itself(communicator& c, const record_entry& e,
                                           const std::string& call) {
  circle_message m;
  set_call(m, e, 0, c);
  const bool single = is_single_message(e.kind);
  if (m_reported || (single && !lacks_call(m_owner, c, m))) return;
  m_reported = true;
  const bool in_call = single && e.number == blocking_message;
  base::log(base::log_level::error, "watchdog", "a rank waits for itself: ", call,
            single ? missing(m, "it") : ", whose messages do not match",
            in_call ? ". Send to the own rank by sendrecv, a group or the forms that return events"
                    : ". Call the other side too, with the same tag, before the wait for an event");
}

void set_call(circle_message& m, const record_entry& e, std::uint32_t repeats,
              const communicator& c) {
  m.replay = !is_point_to_point(e.kind) && origin_of(e.tag) == origin::replay ? 1 : 0;
  m.number = e.number + repeats;
  m.kind = e.kind;
  m.tag = e.tag;
  m.sender = c.rank();
}

bool lacks_call(process_context& rank, communicator& c, const circle_message& m) {
  if (m.kind == circle_message::step_kind)
    return rank.steps().begun({m.step.data(), strnlen(m.step.data(), m.step.size())}) < m.number;
  if (is_point_to_point(m.kind)) {
    const auto& entries = rank.record().memory()->entries;
    return std::none_of(entries.begin(), entries.end(), [&](const record_entry& e) {
      return e.communicator == static_cast<std::uint32_t>(c.id()) && is_point_to_point(e.kind) &&
             may_match(e, m);
    });
  }
  const auto state = c.try_snapshot();
  return state && (m.replay ? state->replayed : state->issued) < m.number;
}

void circle_search::take(communicator& c, const circle_message& m, clock::time_point now) {
  const int own = m_owner.rank();
  if (!waits(now) || !lacks_call(m_owner, c, m)) return;
  const std::string so_far = text_of(m) + missing(m, rank_text(own));
  if (m.origin == own) {
    if (m.lowest < own || std::exchange(m_reported, true)) return;
    return base::log(base::log_level::error, "watchdog", "ranks wait for each other: ", so_far,
                     ". Call collectives of several communicators in one order on all ranks, and "
                     "receive before sending on some of them; or use the forms that return events, "
                     "and wait for them once all are called");
  }
  if (!m_seen.insert({m.origin, m.probe}).second) return;
  passed_on p{m, now, {}, {}};
  p.message.lowest = std::min(m.lowest, own);
  set_text(p.message, so_far + "; ");
  m_passed_on.push_back(std::move(p));
}

}  // namespace sucl::core
