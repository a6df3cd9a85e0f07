// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Operations that run in the calling thread, past the queue.
#include "core/communicator/communicator.hpp"
#include "core/support/backoff.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace sucl::core {
namespace {

bool same(const sucl_operation& a, const sucl_operation& b) {
  static_assert(std::has_unique_object_representations_v<sucl_operation>);
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// The same for records with arrays, whose contents count.
bool same_with_arrays(const sucl_operation& a, sucl_operation b, int size) {
  for (const auto member : operation_arrays) {
    const std::uint64_t *own = a.*member, *theirs = b.*member;
    if (own && theirs && std::equal(own, own + size, theirs)) b.*member = own;
  }
  return same(a, b);
}

// The same for groups, whose parts count.
bool same_with_parts(const sucl_operation& a, sucl_operation b) {
  if (a.part_count != b.part_count ||
      std::memcmp(a.parts, b.parts, a.part_count * sizeof *a.parts) != 0)
    return false;
  b.parts = a.parts;
  return same(a, b);
}

bool same_call(const sucl_operation& known, const sucl_operation& asked, bool arrays, int size) {
  if (known.part_count > 0) return same_with_parts(known, asked);
  return arrays ? same_with_arrays(known, asked, size) : same(known, asked);
}

const layouts no_layouts;

}  // namespace

std::uint64_t communicator::key_of(const sucl_operation& asked) {
  if (asked.part_count > 0) return key_of(asked.parts[0]);
  return base::key_of(reinterpret_cast<std::uintptr_t>(asked.send),
                      reinterpret_cast<std::uintptr_t>(asked.recv), asked.count, asked.kind);
}

// Whether something in flight would stand still while a backend blocks: plans and steps do not go
// on inside MPI, and other ranks may need them before they call MPI.
bool communicator::needs_independent_progress(const backend_instance& c) const {
  return std::any_of(m_flight.begin(), m_flight.end(), [&](const op_request* n) {
    return n->via && n->via != &c && n->via->traits.needs_progress;
  });
}

bool communicator::may_run_directly(const sucl_operation& record) const {
  // Every rank must come to the same answer. Point-to-point goes by run_message(), so that what
  // other threads issue meanwhile can overtake a wait.
  return m_job->settings().watchdog.timeout.count() == 0 && !m_staging.comm_stages &&
         !m_validator && !is_point_to_point(record.kind);
}

bool communicator::run_cached(const sucl_operation& asked) {
  std::unique_lock lock(m_mutex);
  cached_call& known = m_call_cache.slot(key_of(asked));
  if (!knows(known.call)) return false;
  if (!same_call(known.asked, asked, !known.arrays.empty(), size())) return false;
  repeat(known.call, lock);
  return true;
}

// What is under way at once if peers are near does not give the lock away.
void communicator::repeat(persistent_call& call, std::unique_lock<biased_mutex>& lock) {
  throw_if_ended();
  m_mutex.bias_to_me();
  if (is_point_to_point(call.record.kind)) return run_message(call.record, *call.via, lock);
  if (!call.prepared) {
    call.record.sequence = m_collectives + 1;  // says which memory it may be on
    const bool may = call.via->own && !call.via->layered;
    call.prepared = may ? call.via->own->prepare(call.record) : nullptr;
  }
  bool done = false;
  try {
    done = *call.prepared && call.via->own->run(**call.prepared);
  } catch (const error&) {
    note_reported();
    if (m_failures.broken()) throw error(*m_failures.broken());
    throw;
  }
  if (!done) return run_directly(call.record, no_layouts, *call.via, lock);
  m_collectives_posted = number(call.record.kind);
}

void communicator::remember(const sucl_operation& asked, const persistent_call& call) {
  cached_call& known = m_call_cache.slot(key_of(asked));
  known.asked = asked;
  known.call = call;
  keep_arrays(known.asked, size(), known.arrays);
  for (const auto member : operation_arrays) known.call.record.*member = known.asked.*member;
  if (asked.part_count == 0) return;
  known.asked_parts.assign(asked.parts, asked.parts + asked.part_count);
  known.asked.parts = known.asked_parts.data();
  known.parts.assign(call.record.parts, call.record.parts + call.record.part_count);
  known.call.record.parts = known.parts.data();
}

void communicator::run_cached(persistent_call& call) {
  std::unique_lock lock(m_mutex);
  if (knows(call)) return repeat(call, lock);
  lock.unlock();
  run(call.record, no_layouts, nullptr, &call);
}

void communicator::run(const sucl_operation& record, const layouts& shape,
                       const sucl_operation* asked, persistent_call* kept) {
  std::unique_lock lock(m_mutex);
  throw_if_ended();
  if (const backend_instance* c = message_backend_for(record, shape)) {
    if (asked) remember(*asked, {record, c, m_cache_epoch, {}});
    if (kept) kept->via = c, kept->epoch = m_cache_epoch;
    return run_message(record, *c, lock);
  }
  if (may_run_directly(record)) {
    const tune::table_row* row = nullptr;
    const backend_instance& c = m_backends.choose(record, true, &row);
    const transfer_format& w =
        c.formats->of(record.kind, record.type, record.op, record.element_size);
    // Without the layout, which a rank has for itself: all ranks take the same way.
    if (is_native(record, w, m_staging) ||
        !plan_staging(record, {}, *c.formats, m_staging).needed) {
      // Everything before must be posted first; it need not be done.
      while (!m_waiting.empty() || m_direct || !may_post(record) || needs_independent_progress(c)) {
        lock.unlock();
        progress();
        m_job->waiting();
        sched_yield();
        lock.lock();
        throw_if_ended();
      }
      sucl_operation direct = record;
      if (m_pace.watches(row)) {
        const auto begin = clock::now();
        run_directly(direct, shape, c, lock);
        lock.lock();
        return m_pace.note(*row, record.count * record.element_size, clock::now() - begin);
      }
      if (asked) remember(*asked, {record, &c, m_cache_epoch, {}});
      if (kept) kept->via = &c, kept->epoch = m_cache_epoch, kept->prepared.reset();
      return run_directly(direct, shape, c, lock);
    }
  }
  lock.unlock();
  wait(issue(record, shape, true, {}, true).operation);
}

// Which backend executes messages within nodes, if nothing is before this one and nothing observes
// it; or null.
const backend_instance* communicator::message_backend_for(const sucl_operation& record,
                                                          const layouts& shape) {
  if (!is_point_to_point(record.kind) || !m_waiting.empty() || !m_flight.empty() || m_direct ||
      m_validator || m_job->settings().watchdog.timeout.count() > 0)
    return nullptr;
  const tune::table_row* row = nullptr;
  const backend_instance& c = m_backends.choose(record, true, &row);
  if (!c.own || c.layered || !c.own->starts_messages() || m_pace.watches(row)) return nullptr;
  return plan_staging(record, shape, *c.formats, m_staging).needed ? nullptr : &c;
}

// A message or a group of them, over at once if its peers are near. Otherwise it is in flight like
// any other operation, so that what other threads issue meanwhile can overtake it.
void communicator::run_message(const sucl_operation& record, const backend_instance& c,
                               std::unique_lock<biased_mutex>& lock) {
  sucl_request* request = nullptr;
  try {
    request = c.own->start_message(record);
  } catch (...) {
    throw error(caught(record));
  }
  if (!request) return;
  op_request* n = take_request();
  fill(*n, record, no_layouts, true);
  n->issued = n->posted = clock::now();
  n->via = &c;
  n->request = request;
  n->ready.store(true, std::memory_order_relaxed);
  n->references.store(1, std::memory_order_relaxed);  // the communicator's own
  n->at.store(op_request::phase::posted, std::memory_order_relaxed);
  m_flight.push_back(n);
  ticket t(n);
  lock.unlock();
  wait(t);
}

// Lets the backend block in this thread, which is the fastest way through an MPI library. `direct`
// stays as it is meanwhile: no other thread changes it.
void communicator::run_directly(sucl_operation& direct, const layouts& shape,
                                const backend_instance& c, std::unique_lock<biased_mutex>& lock) {
  direct.flags |= SUCL_FLAG_MAY_BLOCK;
  direct.sequence = number(direct.kind);
  direct.tag = encode_form(true);
  m_collectives_posted = direct.sequence;
  m_direct.store(true, std::memory_order_relaxed);
  lock.unlock();
  // What was issued meanwhile is in the hands of the progress thread, or of who assists it.
  const auto end = [&] { m_direct.store(false, std::memory_order_release); };
  try {
    if (shape.send || shape.recv)
      run_packed(direct, shape, c);
    else
      run_native(direct, c);
  } catch (...) {
    const error_info failure = caught(direct);
    end();
    lock.lock();
    note_reported();
    throw error(failure);
  }
  end();
}

void communicator::run_native(const sucl_operation& direct, const backend_instance& c) {
  sucl_request* request = nullptr;
  auto status = c.via.table->post(c.via.comm, &direct, &request);
  if (status == SUCL_SUCCESS && request) {
    // Other ranks may need what is in flight here before they join.
    // Some have spun already, for as long as that helps where processors are few.
    backoff rest(c.traits.spins ? 0 : m_job->settings().progress.spin_us);
    for (std::int32_t done = 0; status == SUCL_SUCCESS && !done; rest.after(done)) {
      progress_others();
      m_job->waiting();
      status = c.via.table->test(c.via.comm, request, &done);
    }
  }
  if (status) throw_last(status, c.name, describe(direct), rank());
}

void communicator::run_packed(const sucl_operation& direct, const layouts& shape,
                              const backend_instance& c) {
  staging_plan how = plan_staging(direct, shape, *c.formats, m_staging);
  if (!how.needed) return run_native(direct, c);
  staged_operation pipeline(direct, std::move(how), c.via, m_device.copier, m_scratch);
  while (!pipeline.step()) {
    progress_others();
    m_job->waiting();
    sched_yield();
  }
}

}  // namespace sucl::core
