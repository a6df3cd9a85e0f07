// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// The functions of a queue whose operations cannot be done.
#include "core/queue/issue_queue.hpp"
#include "core/support/backoff.hpp"

namespace sucl::core {

using phase = op_request::phase;

void issue_queue::fail_all(const error_info& info) {
  held_lock lock(m_mutex);
  fail_all(info, lock);
}

bool issue_queue::try_fail_all(const error_info& info) {
  held_lock lock = try_lock_for(moment);
  if (!lock) return false;
  fail_all(info, lock);
  return true;
}

void issue_queue::fail_all(const error_info& info, held_lock& lock) {
  // A late report about a communicator that has been shrunk is no failure of this process.
  if (m_failures.broken() || ended()) return;
  if (!is_asked_for(info)) m_context.owner->note_failure(info);
  call_back(info, lock);
  if (m_failures.broken() || ended()) return;
  m_context.backends.abort();
  give_up(info);
  std::vector<op_request*> done;
  done.swap(m_done);
  lock.unlock();
  deliver(done);
}

// A caller that is inside a backend for a blocking call gives up between two calls there, where
// nothing else uses the backend. One inside a library may not come out.
void issue_queue::call_back(const error_info& why, held_lock& lock) {
  constexpr auto longest = std::chrono::milliseconds(100);
  const auto until = clock::now() + longest;
  m_called_back = why;
  backoff rest(0);
  while (m_entered && m_inside.load(std::memory_order_relaxed) && clock::now() < until) {
    lock.unlock();
    rest.after(0);
    lock.lock();
  }
  m_called_back.reset();
}

void issue_queue::abandon(const error_info& info) {
  fail_all(info);
  const held_lock lock(m_mutex);
  m_failures.note_reported();
}

// Fails everything that is not done, for observers that are still to be notified.
void issue_queue::give_up(const error_info& info) {
  m_failures.end(info, m_context.rank());
  m_validation.abort();
  while (!m_waiting.empty()) {
    m_flight.push_back(m_waiting.front());
    m_waiting.pop_front();
  }
  while (!m_flight.empty()) {
    op_request* n = m_flight.back();
    n->pipeline.reset();
    finish(*n, &*m_failures.broken());
  }
  if (!is_asked_for(info)) m_context.record.fail(info.message);
}

// What comes before the call in which ranks differ is over, but no thread may have looked.
void issue_queue::test_in_order() {
  for (std::size_t i = 0; i < m_flight.size();) {
    const op_request& n = *m_flight[i];
    const bool looks = n.at.load(std::memory_order_relaxed) == phase::posted && n.via &&
                       n.via->own && n.via->own->ends_in_order();
    if (!looks || !test(*m_flight[i])) ++i;
  }
}

// Ranks have called different operations. What a library below has in flight may never end, nor
// messages to other nodes. A caller that is inside a backend comes out first, and then does this.
// `may_enter`: the backends may be called.
void issue_queue::give_up_mismatched(bool may_enter) {
  constexpr auto for_the_caller = std::chrono::milliseconds(100);
  backend_set& backends = m_context.backends;
  backends.end_kernels();
  if (may_enter) {
    test_in_order();
  } else {
    // A caller that waits for peers does this soon; one inside a library may not come out.
    if (!m_mismatch_seen) m_mismatch_seen = clock::now();
    if (clock::now() - *m_mismatch_seen < for_the_caller) return;
  }
  const bool below = m_context.where.nodes > 1 ||
                     std::any_of(m_flight.begin(), m_flight.end(), [&](const op_request* n) {
                       const bool here = n->via && n->via->traits.ends_on_mismatch;
                       return n->at.load(std::memory_order_relaxed) == phase::posted && !here;
                     });
  if (below && m_entered) return;
  if (below) {
    m_context.owner->note_failure(backends.mismatch());
    backends.abort();
  }
  give_up(backends.mismatch());
  m_failures.drop(errc::mismatch);
}

// A member has ended the communicator, so that this rank waits in vain.
void issue_queue::give_up_for(const error_info& why) {
  if (why.code == errc::mismatch) return m_context.backends.report_mismatch(why.message);
  m_context.owner->note_failure(why);
  m_context.backends.abort();
  give_up(why);
}

std::optional<error_info> issue_queue::find_ended() {
  const auto now = clock::now();
  for (const op_request* n : m_flight)
    if (auto why = m_members.obstacle(n->record, n->turn, n->posted, now)) return why;
  const op_request* first = m_flight.empty() ? nullptr : m_flight.front();
  if (first && !first->on_stream)
    if (auto why = m_members.left_alone(first->record, first->turn, now)) return why;
  if (m_waiting.empty()) return std::nullopt;
  const op_request& next = *m_waiting.front();
  if (!next.ready.load(std::memory_order_acquire)) return std::nullopt;
  return m_members.obstacle(next.record, next.turn, next.issued, now);
}

void issue_queue::check_ended_members() {
  if (m_failures.broken() || m_context.backends.mismatched()) return;
  if (const auto why = find_ended()) give_up_for(*why);
}

std::optional<std::string> issue_queue::ended_too_early() {
  const held_lock lock = try_lock_for(moment);
  if (!lock || !m_members.poll() || m_failures.broken()) return std::nullopt;
  auto why = find_ended();
  const record_entry* inside = m_inside.load(std::memory_order_relaxed);
  if (!why && m_entered && inside) {
    sucl_operation entered{};
    entered.kind = inside->kind;
    entered.tag = call_tag(true);
    const auto now = clock::now();
    why = m_members.obstacle(entered, m_posted, {}, now);
    if (!why) why = m_members.left_alone(entered, m_posted, now);
  }
  if (!why || why->code != errc::mismatch) return std::nullopt;
  return why->message;
}

communicator_end issue_queue::end_of_work(bool leaving) const {
  communicator_end e;
  if (m_failures.broken())
    e.how = communicator_end::manner::failed;
  else if (leaving)
    e.how = communicator_end::manner::left;
  e.calls = m_collectives;
  e.replays = m_replays;
  return e;
}

bool issue_queue::try_note_end(int member, const communicator_end& e) {
  held_lock lock = try_lock_for(moment);
  if (!lock) return false;
  m_members.note(member, e);
  lock.unlock();
  m_waker.wake();
  return true;
}

// What is not done yet is reported by the progress thread.
void issue_queue::note_reported() {
  if (!m_failures.broken() && m_context.backends.mismatched()) {
    give_up_mismatched(!m_entered);
    if (!m_done.empty()) m_waker.wake();
  }
  m_failures.note_reported();
}

void issue_queue::await_mismatch_reports() {
  constexpr auto longest = std::chrono::milliseconds(100);
  if (m_failures.broken()) return;
  m_context.backends.compare_calls();
  const auto until = clock::now() + longest;
  backoff rest(m_context.owner->settings().progress.spin_us);
  while (!m_context.backends.followed() && clock::now() < until) rest.after(0);
  if (m_context.backends.mismatched()) give_up_mismatched(!m_entered);
}

}  // namespace sucl::core
