// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/communicator/circle_search.hpp"

#include "base/log.hpp"
#include "core/communicator/communicator.hpp"
#include "core/control/job.hpp"
#include "core/operation/operation.hpp"
#include "core/record/flight_recorder.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

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

// Blocking calls alone: a rank that has called something else may go on meanwhile. Of messages
// those with one peer: of others it is not known which part is missing.
bool is_wait(const record_entry& e) {
  if (e.state.load(std::memory_order_acquire) != record_state::posted) return false;
  return is_single_message(e.kind) ? e.number == blocking_message : is_blocking(e.kind, e.tag);
}

int peer_of(const record_entry& e) { return e.kind == SUCL_KIND_SEND ? e.root : e.source; }

// Whether an operation of this rank may be the other side of that message.
bool may_match(const record_entry& e, const circle_message& m) {
  const auto state = e.state.load(std::memory_order_acquire);
  if (!is_open(state) && state != record_state::enqueued) return false;
  if (e.kind == SUCL_KIND_GROUP) return true;
  const bool receives = e.kind == SUCL_KIND_RECV || e.kind == SUCL_KIND_SENDRECV;
  const bool sends = e.kind == SUCL_KIND_SEND || e.kind == SUCL_KIND_SENDRECV;
  return e.tag == m.tag && (m.kind == SUCL_KIND_SEND ? receives && e.source == m.sender
                                                     : sends && e.root == m.sender);
}

std::string what_is_missing(const circle_message& m) {
  if (!is_single_message(m.kind)) return " has not called";
  return m.kind == SUCL_KIND_SEND ? " does not receive" : " does not send";
}

}  // namespace

bool circle_search::poll(clock::time_point now) {
  const flight_record* const record = m_owner.record().memory();
  if (!record) return false;
  for (std::size_t i = 0; i < record->entries.size(); ++i) {
    const record_entry& e = record->entries[i];
    if (!is_wait(e)) {
      m_waits.erase(i);
      continue;
    }
    wait& w = m_waits[i];
    const std::uint64_t serial = e.serial.load(std::memory_order_acquire);
    const std::uint32_t repeats = e.repeats.load(std::memory_order_relaxed);
    if (w.serial == serial && w.repeats == repeats) continue;
    w = {serial, repeats, now, now + long_wait, long_wait};
  }
  if (waits(now)) return true;
  m_reported = false;
  m_seen.clear();
  m_passed_on.clear();
  return false;
}

bool circle_search::waits(clock::time_point now) const {
  return std::any_of(m_waits.begin(), m_waits.end(),
                     [&](const auto& w) { return now - w.second.since >= long_wait; });
}

std::string circle_search::describe_call(const record_entry& e, const communicator& c) const {
  sucl_operation o = recorded_operation(e);
  o.sequence = e.number + e.repeats.load(std::memory_order_relaxed);
  return describe(o) + " of " + c.label();
}

void circle_search::send(communicator& c, std::uint32_t what, clock::time_point now,
                         const sender& to) {
  if (m_waits.empty() || (!c.entered() && !c.assisted())) return;
  std::erase_if(m_passed_on, [&](const passed_on& p) { return now - p.since > time_to_pass_on; });
  const flight_record& record = *m_owner.record().memory();
  for (auto& [index, w] : m_waits) {
    const record_entry& e = record.entries[index];
    if (e.communicator != static_cast<std::uint32_t>(c.id()) || now - w.since < long_wait ||
        !is_wait(e) || e.serial.load(std::memory_order_acquire) != w.serial)
      continue;
    const std::string call = rank_text(m_owner.rank()) + " waits in " + describe_call(e, c);
    if (is_single_message(e.kind) && peer_of(e) == c.rank()) {
      report_wait_for_itself(c, e, call);
      continue;
    }
    const auto pass = [&](circle_message m, const std::string& text) {
      m.what = what;
      m.replay = !is_single_message(e.kind) && origin_of(e.tag) == origin::replay ? 1 : 0;
      m.number = e.number + w.repeats;
      m.kind = e.kind;
      m.tag = e.tag;
      m.sender = c.rank();
      set_text(m, text);
      for (int r = 0; r < c.size(); ++r)
        if (r != c.rank() && (!is_single_message(e.kind) || r == peer_of(e))) to(r, m);
    };
    for (passed_on& p : m_passed_on)
      if (p.along.insert(index).second) pass(p.message, text_of(p.message) + call);
    if (now < w.next) continue;
    w.next = now + w.interval;
    w.interval = std::min<std::chrono::nanoseconds>(2 * w.interval, longest_interval);
    circle_message first;
    first.origin = first.lowest = m_owner.rank();
    first.probe = ++m_probes;
    pass(first, call);
  }
}

void circle_search::report_wait_for_itself(communicator& c, const record_entry& e,
                                           const std::string& call) {
  circle_message m;
  m.kind = e.kind;
  m.tag = e.tag;
  m.sender = c.rank();
  if (m_reported || !is_late(c, m)) return;
  m_reported = true;
  base::log(base::log_level::error, "watchdog", "a rank waits for itself: ", call, ", which it",
            what_is_missing(m),
            ". Send to the own rank by sendrecv, a group or the forms that return events");
}

// Whether this rank has not made the call that the sender waits in, or that its message waits for.
bool circle_search::is_late(communicator& c, const circle_message& m) const {
  if (is_single_message(m.kind)) {
    const auto& entries = m_owner.record().memory()->entries;
    return std::none_of(entries.begin(), entries.end(), [&](const record_entry& e) {
      return e.communicator == static_cast<std::uint32_t>(c.id()) && is_point_to_point(e.kind) &&
             may_match(e, m);
    });
  }
  const auto state = c.snapshot();
  return (m.replay ? state.replayed : state.issued) < m.number;
}

void circle_search::take(communicator& c, const circle_message& m, clock::time_point now) {
  const int own = m_owner.rank();
  if (!waits(now) || !is_late(c, m)) return;
  const std::string so_far = text_of(m) + ", which " + rank_text(own) + what_is_missing(m);
  if (m.origin == own) {
    if (m.lowest < own || std::exchange(m_reported, true)) return;
    return base::log(base::log_level::error, "watchdog", "ranks wait for each other: ", so_far,
                     ". Call collectives of several communicators in one order on all ranks, and "
                     "receive before sending on some of them; or use the forms that return events");
  }
  if (!m_seen.insert({m.origin, m.probe}).second) return;
  passed_on p{m, now, {}};
  p.message.lowest = std::min(m.lowest, own);
  set_text(p.message, so_far + "; ");
  m_passed_on.push_back(std::move(p));
}

}  // namespace sucl::core
