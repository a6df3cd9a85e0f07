// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/fast_path/blocking_path.hpp"

#include "base/elements/floating_point_mode.hpp"
#include "base/error.hpp"
#include "core/exchange/core_services.hpp"
#include "core/exchange/waiting.hpp"
#include "core/failure/setup_steps.hpp"
#include "core/operation/call_signature.hpp"
#include "core/operation/operation.hpp"
#include "core/support/backoff.hpp"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

namespace sucl::core {
namespace {

const layouts no_layouts;

}  // namespace

bool blocking_path::run_cached(const sucl_operation& requested) {
  auto lock = m_queue.lock();
  persistent_call* const known = m_calls.find(requested, true);
  if (!known || !m_queue.idle()) return false;
  repeat(*known, lock);
  return true;
}

void blocking_path::run_cached(persistent_call& call) {
  auto lock = m_queue.lock();
  if (m_calls.holds(call) && m_queue.idle()) return repeat(call, lock);
  lock.unlock();
  run(call.record, no_layouts, nullptr, &call);
}

// What is in flight at once if peers are near does not give the lock away.
void blocking_path::repeat(persistent_call& call, held_lock& lock) {
  m_queue.throw_if_ended();
  m_queue.bias_to_me();
  if (is_point_to_point(call.record.kind))
    return run_message(call.record, *call.via, lock, &call.noted);
  if (!m_prepared.run(call)) run_directly(call.record, no_layouts, *call.via, lock, call.signature);
}

bool blocking_path::may_run_directly(const sucl_operation& record) const {
  // Every rank must come to the same answer. Point-to-point goes by run_message(), so that what
  // other threads issue meanwhile can overtake a wait.
  return !m_context.watched() && !m_context.stages.comm_stages && !m_queue.validation().active() &&
         !is_point_to_point(record.kind);
}

// Everything before must be posted first; it need not be done.
void blocking_path::await_turn(const sucl_operation& record, const backend_instance& c,
                               held_lock& lock) {
  while (!m_queue.may_enter(record, c)) {
    lock.unlock();
    m_queue.progress();
    m_context.owner->waiting();
    throw_if_interrupted();
    sched_yield();
    lock.lock();
    m_queue.throw_if_ended();
  }
}

void blocking_path::run(const sucl_operation& record, const layouts& layout,
                        const sucl_operation* requested, persistent_call* kept) {
  auto lock = m_queue.lock();
  m_queue.throw_if_ended();
  if (const backend_instance* c = message_backend_for(record, layout)) {
    if (requested) m_calls.remember(*requested, record, true, *c);
    if (kept) m_calls.note(*kept, *c);
    return run_message(record, *c, lock);
  }
  if (may_run_directly(record)) {
    const tune::table_row* row = nullptr;
    const backend_instance& c = m_context.backends.choose(record, true, &row);
    if (m_prepared.is_unstaged(record, c)) {
      await_turn(record, c, lock);
      sucl_operation direct = record;
      if (m_pace.watches(row)) {
        const auto begin = clock::now();
        run_directly(direct, layout, c, lock);
        lock.lock();
        return m_pace.note(*row, record.count * record.element_size, clock::now() - begin);
      }
      if (requested) m_calls.remember(*requested, record, true, c);
      if (kept) {
        m_calls.note(*kept, c);
        kept->prepared.reset();
      }
      return run_directly(direct, layout, c, lock);
    }
  }
  lock.unlock();
  m_queue.wait(m_queue.issue(record, layout, true, {}, true).operation);
}

// Which backend executes messages within nodes, if nothing is before this one and nothing observes
// it; or null.
const backend_instance* blocking_path::message_backend_for(const sucl_operation& record,
                                                           const layouts& layout) {
  if (!is_point_to_point(record.kind) || !m_queue.idle() || m_queue.validation().active() ||
      m_context.watched())
    return nullptr;
  const tune::table_row* row = nullptr;
  const backend_instance& c = m_context.backends.choose(record, true, &row);
  if (!c.own || c.layered || !c.own->starts_messages() || m_pace.watches(row)) return nullptr;
  return plan_staging(record, layout, *c.formats, m_context.stages).needed ? nullptr : &c;
}

// A message or a group of them, over at once if its peers are near. Otherwise it is in flight like
// any other operation, so that what other threads issue meanwhile can overtake it.
void blocking_path::run_message(const sucl_operation& record, const backend_instance& c,
                                held_lock& lock, record_writer::mark* noted) {
  sucl_request* request = nullptr;
  try {
    request = c.own->start_message(record);
  } catch (...) {
    throw error(m_queue.caught(record));
  }
  if (!request) return m_queue.note_message(record, noted);
  const ticket t = m_queue.adopt(record, c, request);
  lock.unlock();
  m_queue.wait(t);
}

// `direct` stays as it is meanwhile: no other thread changes it.
void blocking_path::run_directly(sucl_operation& direct, const layouts& layout,
                                 const backend_instance& c, held_lock& lock,
                                 std::uint64_t signature) {
  const base::default_floating_point_mode mode;
  direct.flags |= SUCL_FLAG_MAY_BLOCK;
  direct.tag = m_queue.call_tag(true);
  m_queue.enter(direct, signature);
  lock.unlock();
  try {
    if (layout.send || layout.recv)
      run_packed(direct, layout, c);
    else
      run_native(direct, c);
  } catch (...) {
    const error_info failure = m_queue.caught(direct);
    m_queue.leave(true);
    lock.lock();
    m_queue.note_reported();
    m_context.record.fail(failure.message);
    throw error(failure);
  }
  m_queue.leave();
}

// While the caller waits in a backend. False: it waits in vain, as ranks have found, unless its
// operation has just ended.
bool blocking_path::progress_others(const sucl_operation& entered, const backend_instance& c) {
  m_queue.progress_others(entered);
  m_context.owner->waiting();
  throw_if_interrupted();
  if (!m_queue.calls() || !m_context.backends.mismatched()) return true;
  if (!c.own || !c.own->ends_in_order()) throw error(m_context.backends.mismatch());
  return false;
}

void blocking_path::run_native(const sucl_operation& direct, const backend_instance& c) {
  sucl_request* request = nullptr;
  auto status = c.via.table->post(c.via.comm, &direct, &request);
  if (status == SUCL_SUCCESS && request) {
    // Other ranks may need what is in flight here before they join.
    // Some have spun already, for as long as that helps where processors are few.
    backoff rest(c.traits.spins ? 0 : m_context.owner->settings().progress.spin_us);
    for (std::int32_t done = 0; status == SUCL_SUCCESS && !done; rest.after(done)) {
      const bool may_end = progress_others(direct, c);
      status = c.via.table->test(c.via.comm, request, &done);
      if (status == SUCL_SUCCESS && !done && !may_end) throw error(m_context.backends.mismatch());
    }
  }
  if (status) throw_last(status, c.name, describe(direct), m_context.rank());
}

void blocking_path::run_packed(const sucl_operation& direct, const layouts& layout,
                               const backend_instance& c) {
  staging_plan how = plan_staging(direct, layout, *c.formats, m_context.stages);
  if (!how.needed) return run_native(direct, c);
  staged_operation pipeline(direct, std::move(how), c.via, m_context.device.copier,
                            m_context.scratch);
  for (bool may_end = true; !pipeline.step(); sched_yield()) {
    if (!may_end) throw error(m_context.backends.mismatch());
    may_end = progress_others(direct, c);
  }
}

void blocking_path::await_ranks(const arriving_call& before) {
  if (m_context.size() == 1) return;
  sucl_operation barrier{};
  barrier.struct_size = sizeof barrier;
  barrier.kind = SUCL_KIND_BARRIER;
  barrier.type = SUCL_TYPE_BYTES;
  barrier.element_size = 1;  // as one of the program's
  // Blocks are compared below: not every rank may know the one that it frees.
  arriving_call same = before;
  same.block = 0;
  barrier.plan = same.packed();
  {
    const setup_pause paused;
    run(barrier, no_layouts, nullptr);
  }
  compare_arrivals(before);
}

// All ranks free something. What differs afterwards are blocks.
void blocking_path::check_blocks(const arriving_call& mine, std::vector<std::uint64_t>& all) const {
  if (mine.block == 0) return all.assign(all.size(), mine.packed());  // has its own error
  std::uint64_t common = arriving_call::any_block;
  for (std::size_t r = 0; r < all.size(); ++r) {
    const std::uint64_t block = arriving_call::of(all[r]).block;
    if (block == 0)
      base::fail(errc::invalid_memory,
                 "rank " + std::to_string(r) + " has called " + barrier_name(mine.packed()) +
                     " with a pointer that is none of this communicator's",
                 "Pass what the communicator has allocated or registered, once, on every rank");
    if (common == arriving_call::any_block) common = block;
  }
  arriving_call one = mine;
  one.block = common;
  for (std::uint64_t& call : all) {
    if (arriving_call::of(call).block == arriving_call::any_block) call = one.packed();
  }
}

namespace {

// Ends the wait for ranks that are found to have called something else, and so do not come.
class mismatch_supervisor final : public wait_supervisor {
 public:
  explicit mismatch_supervisor(const backend_set& backends)
      : m_backends(backends), m_outer(supervise_waits(this)) {}
  mismatch_supervisor(const mismatch_supervisor&) = delete;
  mismatch_supervisor& operator=(const mismatch_supervisor&) = delete;
  ~mismatch_supervisor() { supervise_waits(m_outer); }

  sucl_status keep_waiting() noexcept override try {
    if (m_backends.mismatched()) return keep(m_backends.mismatch());
    return m_outer ? m_outer->keep_waiting() : SUCL_SUCCESS;
  } catch (const std::exception& e) {
    return services().fail(SUCL_ERROR_INTERNAL, 0, e.what(), nullptr);
  }
  void note_progress() noexcept override {
    if (m_outer) m_outer->note_progress();
  }

 private:
  const backend_set& m_backends;
  wait_supervisor* m_outer;
};

}  // namespace

// Libraries such as MPI, and steps of some ranks, execute any two barriers as one.
void blocking_path::compare_arrivals(const arriving_call& mine) {
  const int size = m_context.size();
  std::vector<std::uint64_t> all(static_cast<std::size_t>(size));
  sucl_oob oob = m_context.oob();
  const std::uint64_t own = mine.packed();
  {
    std::optional<mismatch_supervisor> supervisor;
    if (m_queue.calls()) supervisor.emplace(m_context.backends);
    const auto status = services().oob_allgather(&oob, &own, all.data(), sizeof own);
    if (status && m_queue.calls() && m_context.backends.mismatched()) {
      const auto lock = m_queue.lock();
      m_queue.throw_if_ended();
    }
    if (status) throw_last(status, "", barrier_name(own), m_context.rank());
  }
  if (mine.frees() && std::all_of(all.begin(), all.end(), [&](std::uint64_t theirs) {
        return arriving_call::of(theirs).call == mine.call;
      }))
    check_blocks(mine, all);
  if (std::all_of(all.begin(), all.end(), [&](std::uint64_t c) { return c == all.front(); }))
    return;
  std::vector<ranks_call> calls;
  for (int r = 0; r < size; ++r) {
    ranks_call c{r, all[static_cast<std::size_t>(r)], {}};
    c.call.kind = SUCL_KIND_BARRIER;
    c.call.count = c.history;
    calls.push_back(c);
  }
  m_queue.report_mismatch(
      describe_difference(calls, all[static_cast<std::size_t>(m_context.rank())]));
  const auto lock = m_queue.lock();
  m_queue.throw_if_ended();
}

}  // namespace sucl::core
