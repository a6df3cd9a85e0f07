// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/queue/issue_queue.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "core/exchange/waiting.hpp"
#include "core/support/backoff.hpp"
#include "core/support/postponed_ends.hpp"

#include <sched.h>

#include <exception>

namespace sucl::core {

using phase = op_request::phase;

// A copy of an operation.
op_request& issue_queue::take(const sucl_operation& record, const layouts& layout, bool ready) {
  op_request& n = *m_requests.take();
  n.record = record;
  n.record.struct_size = sizeof(sucl_operation);
  n.turn = 0;
  n.layout = layout;
  n.bounce_buffer = nullptr;
  n.parts.assign(record.parts, record.parts + record.part_count);
  n.record.parts = n.parts.data();
  keep_arrays(n.record, m_context.size(), n.arrays);
  n.issued = clock::now();
  n.ready.store(ready, std::memory_order_relaxed);
  n.references.store(1, std::memory_order_relaxed);  // the communicator's own
  return n;
}

// The call that comes next.
op_request& issue_queue::take_call(const sucl_operation& record, const layouts& layout,
                                   bool blocking, bool ready) {
  op_request& n = take(record, layout, ready);
  n.record.sequence = n.turn = number(record.kind);
  if (!is_point_to_point(record.kind)) n.record.tag = call_tag(blocking);
  const bool waits = blocking && is_point_to_point(record.kind);
  n.noted =
      m_context.record.note(n.record, waits ? blocking_message : n.turn, record_state::issued);
  m_context.record.note_caller(n.noted);
  return n;
}

issue_result issue_queue::issue(const sucl_operation& record, const layouts& layout, bool ready,
                                const observer& watch, bool blocking) {
  end_postponed();
  held_lock lock(m_mutex);
  throw_if_ended();
  return issue(record, layout, ready, watch, blocking, lock);
}

issue_result issue_queue::issue(const sucl_operation& record, const layouts& layout, bool ready,
                                const observer& watch, bool blocking, held_lock& lock) {
  op_request& n = take_call(record, layout, blocking, ready);
  if (n.record.sequence) m_context.backends.note_issue(n.record.sequence);
  m_waiting.push_back(&n);
  return begin(n, watch, blocking, lock);
}

// It is counted: a rank that records alone makes its next call after more recorded operations than
// the others. Nothing is issued, which would need a position among the replays of graphs, and the
// host does not know which of them have begun.
sucl_operation issue_queue::record(const sucl_operation& operation) {
  sucl_operation recorded = operation;
  const held_lock lock(m_mutex);
  throw_if_ended();
  if (is_point_to_point(operation.kind)) return recorded;
  ++m_recorded;
  recorded.sequence = m_collectives + 1;  // says which memory it may be on
  recorded.tag = encode_tag(false, origin::replay, m_recorded);
  return recorded;
}

// The replay goes before calls that are not ready, because these may wait for it.
issue_result issue_queue::replay(const sucl_operation& recorded, const layouts& layout,
                                 const observer& watch) {
  held_lock lock(m_mutex);
  // A failure that is still to be thrown is for the program's next call, not for a command of it.
  if (!m_failures.any() || m_failures.broken()) throw_if_ended();
  op_request& n = take(recorded, layout, true);
  n.watch = watch;  // no caller gets what fails at once
  if (!is_point_to_point(recorded.kind)) n.turn = ++m_replays;
  n.noted = m_context.record.note(n.record, n.turn, record_state::issued);
  const auto at = std::find_if(m_waiting.begin(), m_waiting.end(), [](const op_request* o) {
    return !o->ready.load(std::memory_order_acquire);
  });
  m_waiting.insert(at, &n);
  return begin(n, watch, false, lock);
}

// The request is in the queue already. Releases the lock.
issue_result issue_queue::begin(op_request& n, const observer& watch, bool blocking,
                                held_lock& lock) {
  ticket t(&n);
  if (n.ready.load(std::memory_order_relaxed) && !m_entered) {
    const auto until = n.issued + spin_limit_for(n.record);
    do {
      pump();
      test_all();
    } while (!t.done() && clock::now() < until);
  }
  const bool done = t.done();
  if (!done) n.watch = watch;
  deliver_done(lock);
  lock.unlock();
  // A thread that is woken takes a processor, at times the peer's. So the blocked thread makes
  // progress itself.
  if (!done && !watch.assisted && !blocking) m_waker.wake();
  return {std::move(t), done};
}

ticket issue_queue::adopt(const sucl_operation& record, const backend_instance& via,
                          sucl_request* request) {
  op_request& n = take_call(record, {}, true, true);
  n.posted = n.issued;
  n.via = &via;
  n.request = request;
  record_writer::set(n.noted, record_state::posted);
  n.at.store(phase::posted, std::memory_order_relaxed);
  m_flight.push_back(&n);
  return ticket(&n);
}

// How long a call that could post its operation polls for it before it returns: long enough for the
// data to move if the peers are there, since some processor has to move it anyway, and short beside
// the commands that completion by an event costs.
std::chrono::nanoseconds issue_queue::spin_limit_for(const sucl_operation& record) const {
  const auto poll = std::chrono::microseconds(m_context.owner->settings().progress.poll_us);
  if (poll.count() == 0) return poll;
  constexpr std::uint64_t bytes_per_ns = 5;
  constexpr std::chrono::nanoseconds most = std::chrono::microseconds(100);
  auto bytes = record.count * record.element_size;
  for (std::uint64_t i = 0; i < record.part_count; ++i)
    bytes += record.parts[i].count * record.parts[i].element_size;
  return std::min<std::chrono::nanoseconds>(
      most,
      poll + std::chrono::nanoseconds(std::min<std::uint64_t>(bytes / bytes_per_ns, 1000000)));
}

void issue_queue::mark_ready(const ticket& t, const void* send, void* recv) {
  op_request* n = t.get();
  if (send) n->record.send = send;
  if (recv) n->record.recv = recv;
  mark_ready(t);
}

void issue_queue::mark_ready(const ticket& t) {
  t.get()->ready.store(true, std::memory_order_release);
  if (!t.get()->watch.assisted) m_waker.wake();
}

void issue_queue::refuse(const sucl_operation& record, const error_info& wrong) noexcept try {
  if (!m_validation.covers(record.kind)) return;
  sucl_operation shown = record;  // without arrays, which may be too short
  shown.send_counts = shown.send_displs = shown.recv_counts = shown.recv_displs = nullptr;
  {
    const held_lock lock(m_mutex);
    if (m_failures.broken() || ended()) return;
    op_request& n = take_call(shown, {}, false, true);
    n.failure = wrong;
    m_waiting.push_back(&n);
  }
  m_waker.wake();
} catch (const std::exception& e) {
  base::log(base::log_level::warn, "runtime", "the other ranks cannot get the error: ", e.what());
}

void issue_queue::refuse(const ticket& t, const error_info& wrong) {
  {
    const held_lock lock(m_mutex);
    op_request& n = *t.get();
    if (n.at.load(std::memory_order_relaxed) != phase::waiting) return;  // given up meanwhile
    n.failure = wrong;
  }
  mark_ready(t);
}

// Posts what may be posted, in order.
void issue_queue::pump() {
  while (!m_waiting.empty()) {
    op_request& n = *m_waiting.front();
    if (!n.ready.load(std::memory_order_acquire)) {
      if (!n.watch.is_ready || !n.watch.is_ready(n.watch.context)) return;
      n.ready.store(true, std::memory_order_relaxed);
    }
    if (!may_post(n.record) || !m_validation.may_run(n, m_context.rank(), last_turn(n))) return;
    m_waiting.pop_front();
    start(n);
    if (n.failure)
      finish(n, &*n.failure);
    else
      post(n);
  }
}

void issue_queue::post(op_request& n) {
  try {
    if (m_dispatch.post(n)) finish(n, nullptr);
  } catch (...) {
    const auto info = caught(n.record);
    finish(n, &info);
    m_context.record.fail(info.message);
  }
}

// Progresses one operation; true if that ended it.
bool issue_queue::test(op_request& n) {
  try {
    const bool done = m_dispatch.test(n);
    if (done) finish(n, nullptr);
    return done;
  } catch (...) {
    const auto info = caught(n.record);
    finish(n, &info);
    m_context.record.fail(info.message);
    return true;
  }
}

void issue_queue::test_all() {
  for (std::size_t i = 0; i < m_flight.size();)
    if (!test(*m_flight[i])) ++i;
}

void issue_queue::finish(op_request& n, const error_info* failure) {
  m_flight.erase(std::find(m_flight.begin(), m_flight.end(), &n));
  if (failure) {
    n.failure = *failure;
    if (!is_point_to_point(n.record.kind)) m_any_failed = true;
    base::log(base::log_level::info, "runtime", describe(n.record), " failed: ", failure->message);
    // A waiting caller gets the error; an asynchronous failure is kept for the next call.
    const bool asynchronous = n.watch.done || n.watch.assisted;
    if (asynchronous) m_failures.keep(*failure, n.watch.thrown);
  }
  m_undelivered.fetch_add(1, std::memory_order_relaxed);
  record_writer::set(n.noted, failure                     ? record_state::failed
                              : n.on_stream && !n.request ? record_state::enqueued
                                                          : record_state::done);
  n.at.store(phase::done, std::memory_order_release);
  m_done.push_back(&n);
}

// Notifies observers. Without the lock: they call into SYCL, or issue operations.
void issue_queue::deliver(std::vector<op_request*>& done) {
  for (op_request* n : done) {
    if (n->watch.done) n->watch.done(n->watch.context, n->failure ? &*n->failure : nullptr);
    m_undelivered.fetch_sub(1, std::memory_order_release);
  }
  const held_lock lock(m_mutex);
  for (op_request* n : done) {
    m_requests.give_back(n);
    n->references.fetch_sub(1, std::memory_order_release);
  }
  done.clear();
  if (m_done.empty()) m_done.swap(done);  // keeps the capacity
}

// Notifies observers of what is done so far; gives up the lock meanwhile.
void issue_queue::deliver_done(held_lock& lock) {
  while (!m_done.empty()) {
    std::vector<op_request*> finished;
    finished.swap(m_done);
    lock.unlock();
    deliver(finished);
    lock.lock();
  }
}

bool issue_queue::progress(int* finished) {
  held_lock lock(m_mutex, std::try_to_lock);
  if (!lock) return true;  // another thread makes progress
  return progress_locked(lock, finished, !m_entered);
}

void issue_queue::progress_others(const sucl_operation& entered) {
  held_lock lock(m_mutex);
  // Where ranks differ, a backend knows whether this is before that.
  if (m_failures.broken() && m_failures.broken()->code != errc::mismatch)
    throw error(*m_failures.broken());
  if (m_called_back) {
    const error_info why = *m_called_back;
    give_up_for(why);
    if (!m_done.empty()) m_waker.wake();
    throw error(why);
  }
  if (m_members.poll() && !m_failures.broken() && !m_context.backends.mismatched()) {
    // The limit of waiting does not matter here: a member that has ended comes no more.
    const auto now = clock::now();
    auto why = m_members.obstacle(entered, entered.sequence, {}, now);
    if (!why) why = m_members.left_alone(entered, entered.sequence, now);
    if (why) {
      give_up_for(*why);
      if (!m_done.empty()) m_waker.wake();  // notifies observers
      throw error(*why);
    }
  }
  if (!m_flight.empty() || !m_waiting.empty()) progress_locked(lock, nullptr, true);
}

bool issue_queue::progress_locked(held_lock& lock, int* finished, bool may_enter) {
  if (m_members.poll()) check_ended_members();
  if (!m_failures.broken() && m_context.backends.mismatched()) give_up_mismatched(may_enter);
  if (may_enter) {
    pump();
    test_all();
    pump();
  } else {
    // Peers may need these before they join what the caller is inside of.
    for (std::size_t i = 0; i < m_flight.size();)
      if (!m_flight[i]->via || !m_flight[i]->via->traits.independent_progress ||
          !test(*m_flight[i]))
        ++i;
  }
  const bool more =
      !m_flight.empty() ||
      (!m_waiting.empty() && (m_waiting.front()->ready.load(std::memory_order_acquire) ||
                              m_waiting.front()->watch.is_ready != nullptr));
  if (!m_done.empty()) {
    std::vector<op_request*> done;
    done.swap(m_done);
    lock.unlock();
    if (finished) *finished += static_cast<int>(done.size());
    deliver(done);
  }
  return more;
}

void issue_queue::wait(const ticket& t) {
  assist(t);
  if (!t.failure()) return;
  {
    const held_lock lock(m_mutex);
    note_reported();
  }
  throw error(*t.failure());
}

void issue_queue::assist(const ticket& t) {
  m_assistants.fetch_add(1, std::memory_order_acq_rel);
  // The last assistant leaves operations in flight to the progress thread.
  const auto leave = [&] {
    if (m_assistants.fetch_sub(1, std::memory_order_acq_rel) == 1 && progress()) m_waker.wake();
  };
  try {
    backoff rest(m_context.owner->settings().progress.spin_us);
    while (!t.done()) {
      int finished = 0;
      progress(&finished);
      if (t.done()) break;
      m_context.owner->waiting();
      throw_if_interrupted();
      rest.after(finished);
    }
  } catch (...) {
    leave();
    throw;
  }
  leave();
}

void issue_queue::drain(bool at_end) {
  backoff rest(m_context.owner->settings().progress.spin_us);
  for (;;) {
    {
      const held_lock lock(m_mutex);
      if ((at_end && m_failures.broken()) || (idle() && m_done.empty())) return;
    }
    int finished = 0;
    progress(&finished);
    if (at_end)
      m_context.owner->waiting();
    else
      throw_if_interrupted();
    rest.after(finished);
  }
}

bool issue_queue::needs_independent_progress(const backend_instance& c) const {
  return std::any_of(m_flight.begin(), m_flight.end(), [&](const op_request* n) {
    return n->via && n->via != &c && n->via->traits.needs_progress;
  });
}

bool issue_queue::runs_plan(std::uint64_t number) const {
  const auto runs_it = [&](const op_request* n) {
    return n->record.kind == compiled_plan_kind && n->record.plan == number;
  };
  return m_entered || std::any_of(m_waiting.begin(), m_waiting.end(), runs_it) ||
         std::any_of(m_flight.begin(), m_flight.end(), runs_it);
}

ticket issue_queue::user_of(const void* memory, std::uint64_t bytes) const {
  const auto uses_it = [&](const op_request* n) {
    return may_touch(n->record, m_context.rank(), m_context.size(), memory, bytes);
  };
  if (const auto n = std::find_if(m_waiting.begin(), m_waiting.end(), uses_it);
      n != m_waiting.end())
    return ticket(*n);
  const auto n = std::find_if(m_flight.begin(), m_flight.end(), uses_it);
  return n == m_flight.end() ? ticket() : ticket(*n);
}

void issue_queue::await_exit(held_lock& lock) {
  while (m_entered) {
    lock.unlock();
    sched_yield();
    lock.lock();
  }
}

bool issue_queue::may_follow_on_stream(const sucl_operation& record,
                                       const backend_instance& c) const {
  if (!may_post(record)) return false;
  // Steps of an operation that the host executes are still to come, and this one's would overtake.
  if (c.traits.composed && std::any_of(m_flight.begin(), m_flight.end(),
                                       [&](const op_request* n) { return n->via == &c; }))
    return false;
  // The host posts what stands before it when that is ready, and this one could come first.
  return std::all_of(m_waiting.begin(), m_waiting.end(),
                     [](op_request* n) { return n->on_stream; });
}

ticket issue_queue::append_on_stream(const sucl_operation& record, const layouts& layout,
                                     const backend_instance& c) {
  op_request& n = take_call(record, layout, false, false);
  n.via = &c;
  n.on_stream = true;
  n.watch.assisted = true;
  if (n.record.sequence) m_context.backends.note_issue(n.record.sequence);
  m_waiting.push_back(&n);
  return ticket(&n);
}

// The backend is called without the lock, so that a thread that issues the next operation meanwhile
// does not wait; m_entered keeps all other threads from calling it.
bool issue_queue::enter_with_stream(op_request& n, held_lock& lock, bool& first) {
  await_exit(lock);
  if (n.at.load(std::memory_order_relaxed) != phase::waiting) return false;
  first = m_waiting.front() == &n;
  m_waiting.erase(std::find(m_waiting.begin(), m_waiting.end(), &n));
  start(n);
  m_entered.store(true, std::memory_order_relaxed);
  return true;
}

void issue_queue::leave_with_stream(op_request& n, const std::optional<error_info>& failure,
                                    held_lock& lock) {
  leave();
  const bool mine = n.at.load(std::memory_order_relaxed) == phase::posted;
  if (mine && (failure || !n.request)) finish(n, failure ? &*failure : nullptr);
  deliver_done(lock);
  if (!m_waiting.empty() || !m_flight.empty()) m_waker.wake();
}

void issue_queue::throw_if_shut_down() const {
  throw_if_forked();
  if (ended())
    base::fail(errc::shut_down, "the communicator has ended",
               "Keep the runtime alive, and MPI initialised, while communicators are used");
}

// Why an operation cannot be issued; a failure that was not reported yet is reported once.
void issue_queue::rethrow_pending() {
  throw_if_shut_down();
  note_reported();
  if (!m_failures.any()) throw error(m_context.backends.mismatch());
  m_failures.rethrow();
}

void issue_queue::check() {
  const held_lock lock(m_mutex);
  if (!m_entered) m_context.backends.compare_calls();
  throw_if_ended();
}

void issue_queue::check_issued() {
  throw_if_forked();
  const held_lock lock(m_mutex);
  if (ended()) {
    if (m_failures.any()) m_failures.rethrow();
    return;
  }
  if (!m_entered) m_context.backends.compare_calls();
  throw_if_ended();
}

bool issue_queue::compare_calls() {
  const held_lock lock(m_mutex, std::try_to_lock);
  if (!lock || m_entered || ended() || m_failures.broken()) return false;
  m_context.backends.compare_calls();
  return m_context.backends.mismatched();
}

call_excerpt issue_queue::excerpt(std::uint64_t from, std::uint64_t stride, std::uint64_t count) {
  const held_lock lock(m_mutex);
  return m_log ? m_log->excerpt(from, stride, count) : call_excerpt{};
}

void issue_queue::report_mismatch(const std::string& what) {
  {
    const held_lock lock(m_mutex);
    if (ended() || m_failures.broken()) return;
    m_context.backends.report_mismatch(what);
  }
  m_waker.wake();  // gives up what is in flight
}

bool issue_queue::failed_or_ended() {
  const held_lock lock(m_mutex);
  return m_failures.broken() || ended();
}

// The oldest operation that is posted or ready; null: none.
const op_request* issue_queue::oldest() const {
  if (!m_flight.empty()) return m_flight.front();
  const bool ready = !m_waiting.empty() && m_waiting.front()->ready.load(std::memory_order_acquire);
  return ready ? m_waiting.front() : nullptr;
}

issue_queue::held_lock issue_queue::try_lock_for(std::chrono::nanoseconds time) {
  const auto until = clock::now() + time;
  held_lock lock = try_lock();
  while (!lock && clock::now() < until) {
    sched_yield();
    lock = try_lock();
  }
  return lock;
}

progress_status issue_queue::snapshot() {
  progress_status s;
  s.posted = m_posted;
  s.replayed = m_replayed;
  s.issued = m_collectives;
  const op_request* n = oldest();
  if (!n) return s;
  s.busy = true;
  s.oldest = n->record;
  s.turn = n->turn;
  s.peers = peers_of(n->record);
  if (!s.peers.empty() && m_members.poll()) s.ended = m_members.ended_regularly();
  if (n->at.load() == phase::posted) {
    s.since = n->posted;
  } else {
    // Time counts from when the operation is ready: what it waits for before is the program's own.
    if (m_seen_ready.first != n->issued) m_seen_ready = {n->issued, clock::now()};
    s.since = m_seen_ready.second;
  }
  return s;
}

}  // namespace sucl::core
