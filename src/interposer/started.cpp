// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Operations that go on after the program's call: of non-blocking and of persistent requests.
#include "base/error.hpp"
#include "core/operation/operation.hpp"
#include "core/support/backoff.hpp"
#include "interposer/errors.hpp"
#include "interposer/interposer.hpp"
#include "interposer/next.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace sucl::interposer {

interposer::turn interposer::turn_of(call_class& c) {
  const std::lock_guard lock(m_requests.lock());
  const std::uint64_t number = c.tuner.started();
  const bool over = c.tuner.over();
  const choice to = c.start();
  return {to, number, c.tuner.decided(), !c.tuner.decided() && !over};
}

void interposer::take_back(call_class& c) {
  const std::lock_guard lock(m_requests.lock());
  c.tuner.take_back();
  c.take_back();
}

// Issues the operation of a request, which is active then.
int interposer::issue(pending& r, found_errors& errors) {
  const own_call guard;
  try {
    sucl_operation o = r.what.filled();
    core::normalise(o, r.core->rank(), r.core->size());
    core::observer watch;
    watch.assisted = true;  // completion calls and the progress_thread make the progress
    r.before = calls_before(*r.core);
    core::issue_result issued = r.core->issue(o, {}, true, watch);
    r.done_at_once = issued.done;
    r.operation = std::move(issued.operation);
    m_requests.activate(r, pending::by::sucl);
    return MPI_SUCCESS;
  } catch (const error& e) {
    errors.add(e, m_requests.native_of(r));
    return code_of(e);
  }
}

int interposer::begin(comm_state& p, call_class& c, const turn& now, transfer t,
                      MPI_Request* request) {
  pending* r = m_requests.take();
  if (!r) {
    log_text(base::log_level::error, "MPI gives no handle for a request");
    PMPI_Comm_call_errhandler(p.native, MPI_ERR_OTHER);
    return MPI_ERR_OTHER;
  }
  const stopwatch time;
  counters& own = p.counts[static_cast<std::size_t>(t.called)];
  ++own.calls[static_cast<std::size_t>(outcome::served)];
  own.saved += c.tuner.saving();
  t.keep_handles();
  {
    const std::lock_guard lock(m_requests.lock());
    r->with = &p;
    r->native = p.native;
    r->core = p.core;
    r->what = std::move(t);
    r->measured = now.timed ? &c : nullptr;
    r->number = now.number;
  }
  found_errors errors;
  const int code = issue(*r, errors);
  r->spent = time.seconds();
  if (code == MPI_SUCCESS) {
    *request = r->handle;
  } else {
    r->what.release_handles();
    m_requests.give_back(*r);
  }
  return errors.report(code);
}

// A persistent_slot that is free on every rank, or a new one; null if there are too many. Every
// rank is known to come: what follows are collectives of the library's.
std::shared_ptr<persistent_slot> interposer::free_slot(comm_state& p) {
  std::uint64_t free = 0;
  {
    const std::lock_guard lock(m_requests.lock());
    for (std::size_t i = 0; i < p.slots.size(); ++i)
      if (!p.slots[i]->busy) free |= std::uint64_t{1} << i;
  }
  PMPI_Allreduce(MPI_IN_PLACE, &free, 1, MPI_UINT64_T, MPI_BAND, p.native);
  for (std::size_t i = 0; i < p.slots.size(); ++i)
    if (free >> i & 1) return p.slots[i];
  return new_slot(p);
}

std::shared_ptr<persistent_slot> interposer::new_slot(comm_state& p) {
  if (p.slots.size() == max_slots) return nullptr;
  auto made = std::make_shared<persistent_slot>();
  bool later = true;
  for (int tries = 16; tries > 0 && later; --tries) made->core = make_core(p, 0, later);
  if (!made->core) return nullptr;
  const own_call guard;
  made->decisions = reinterpret_cast<tune::shared_decision*>(
      made->core->common_memory(2 * sizeof(tune::shared_decision)));
  p.slots.push_back(made);
  return made;
}

// The other shared_decision was last used by a request that is gone on every rank.
void interposer::occupy(persistent_slot& slot, call_class by, int rank) {
  const std::uint64_t use = slot.uses++;
  by.shared = &slot.decisions[use % 2];
  if (rank == 0) slot.decisions[(use + 1) % 2].clear();
  slot.of_request = std::make_unique<call_class>(by);
}

// SuCL is being set up: persistent requests that were made before get a slot, from the first start
// on that no rank has made. Not where another thread may be starting them. Every rank is here.
void interposer::take_over_early(comm_state& p) {
  const own_call guard;
  int level = MPI_THREAD_MULTIPLE;
  PMPI_Query_thread(&level);
  std::array<int, 3> made{p.early, -p.early, p.refused == 0 && level < MPI_THREAD_MULTIPLE};
  PMPI_Allreduce(MPI_IN_PLACE, made.data(), 3, MPI_INT, MPI_MIN, p.native);
  if (made[0] == 0 || made[0] != -made[1] || made[2] == 0) return;
  constexpr int most = 64;
  std::array<pending*, most> of{};
  std::array<std::uint64_t, most> starts{};
  std::uint64_t fit = 0;
  for (pending* r : m_requests.early_of(p)) {
    if (r->early > most) break;
    const auto i = static_cast<std::size_t>(r->early - 1);
    if (!make_class(settings(), *p.core, r->what, form::persistent).offered) continue;
    of[i] = r;
    starts[i] = r->starts;
    fit |= std::uint64_t{1} << i;
  }
  PMPI_Allreduce(MPI_IN_PLACE, &fit, 1, MPI_UINT64_T, MPI_BAND, p.native);
  PMPI_Allreduce(MPI_IN_PLACE, starts.data(), most, MPI_UINT64_T, MPI_MAX, p.native);
  for (std::size_t i = 0; i < most; ++i) {
    if (!(fit >> i & 1)) continue;
    const auto on = new_slot(p);
    if (!on || !on->decisions) return;
    pending& r = *of[i];
    occupy(*on, make_class(settings(), *p.core, r.what, form::persistent), p.at.rank);
    on->busy = true;
    r.core = on->core;
    r.on = on;
    r.from = starts[i];
  }
}

// One that the library alone starts, with host memory for a device's.
void interposer::prepare_staged(MPI_Comm comm, sucl_kind kind, MPI_Request request,
                                const std::shared_ptr<device::staged_memory>& staged) {
  int code = MPI_SUCCESS;
  comm_state* const p = find(comm, code);
  if (!p) return;
  const auto fill = [&](pending& r) {
    r.with = p;
    r.native = p->native;
    r.what.called = kind;
    r.staged = staged;
  };
  pending* const known = m_requests.prepared(request);
  if (!known) return m_requests.add_persistent(request, fill);
  const std::lock_guard lock(m_requests.lock());
  fill(*known);
}

outcome interposer::prepare(comm_state& p, transfer& t, MPI_Request request) {
  if (!p.suitable) return outcome::unsupported_comm;
  const bool known = t.known && t.may_go_on;
  if (!p.core) {
    if (p.oversubscribed) return outcome::oversubscribed;
    ++p.early;
    if (!known) return outcome::unknown;
    t.keep_handles();
    m_requests.add_persistent(request, [&](pending& r) {
      r.with = &p;
      r.native = p.native;
      r.what = std::move(t);
      r.early = p.early;
    });
    return outcome::early;
  }
  call_class made = known ? make_class(settings(), *p.core, t, form::persistent)
                          : call_class(ab_measurement(0, 1, choice::mpi));
  core::backoff rest(50);
  const bool all = p.prepared.meet(made.offered, [&] { go_on(), rest.after(0); });
  if (!all) return known && !made.offered ? outcome::slower : outcome::unknown;
  const auto on = free_slot(p);
  if (!on || !on->decisions) return outcome::oversubscribed;
  occupy(*on, made, p.at.rank);
  t.keep_handles();
  m_requests.add_persistent(request, [&](pending& r) {
    on->busy = true;
    r.with = &p;
    r.native = p.native;
    r.core = on->core;
    r.on = on;
    r.what = std::move(t);
  });
  return outcome::served;
}

int interposer::start_at_library(pending& r) {
  if (r.staged)
    if (const int code = load(*r.staged, m_requests.native_of(r))) return code;
  const int code = SUCL_NEXT_OR_LIBRARY(Start)(&r.handle);
  if (code != MPI_SUCCESS) return code;
  m_requests.activate(r, pending::by::library);
  constexpr int last = (1 << 30) - 1;
  const std::lock_guard lock(m_requests.lock());
  if (r.with) r.with->started = (r.with->started + 1) & last;
  return code;
}

int interposer::start_prepared(pending& r) {
  if (r.active()) return SUCL_NEXT_OR_LIBRARY(Start)(&r.handle);  // the library says what is wrong
  if (!r.on || r.starts < r.from || !m_running) {
    const int code = start_at_library(r);
    if (code == MPI_SUCCESS) ++r.starts;
    return code;
  }
  call_class& c = *r.on->of_request;
  const turn now = turn_of(c);
  const stopwatch time;
  const bool own = now.to == choice::sucl;
  {
    const std::lock_guard lock(m_requests.lock());
    r.measured = now.timed ? &c : nullptr;
    r.number = now.number;
    if (r.with) {
      const sucl_kind kind = r.what.called;
      count(*r.with, kind, own ? outcome::served : now.decided ? outcome::slower : outcome::tried);
      if (own) r.with->counts[static_cast<std::size_t>(kind)].saved += c.tuner.saving();
    }
  }
  found_errors errors;
  int code = MPI_SUCCESS;
  if (own) {
    code = issue(r, errors);
  } else {
    code = start_at_library(r);
    if (is_refused(code)) take_back(c);
  }
  r.spent = time.seconds();
  return errors.report(code);
}

int interposer::deliver(pending& r, found_errors& errors) {
  const std::lock_guard lock(r.delivery);
  if (std::exchange(r.delivered, true)) return r.outcome;
  try {
    if (r.own())
      r.outcome = r.what.finish();
    else if (r.staged)
      r.staged->store();
  } catch (const error& e) {
    errors.add(e, m_requests.native_of(r));
    r.outcome = code_of(e);
  }
  return r.outcome;
}

int interposer::finish(pending& r, found_errors& errors) {
  int code = MPI_SUCCESS;
  if (const auto& failure = r.operation.failure()) {
    const error e(*failure);
    if (!is_given_in_vain(e, r.what, *r.core, r.before)) {
      errors.add(e, m_requests.native_of(r));
      code = code_of(e);
    }
  } else {
    code = deliver(r, errors);
  }
  if (!r.persistent) r.what.release_handles();
  return code;
}

void interposer::note_device(MPI_Comm comm, sucl_kind kind) {
  int code = MPI_SUCCESS;
  interposer* const self = active();
  if (comm_state* const p = self ? self->find(comm, code) : nullptr)
    ++p->counts[static_cast<std::size_t>(kind)].on_devices;
}

int interposer::load(const device::staged_memory& staged, MPI_Comm comm) {
  std::optional<error> failed;
  try {
    staged.load();
    return MPI_SUCCESS;
  } catch (const error& e) {
    failed = e;
  }
  return report(*failed, comm);
}

int interposer::store(const device::staged_memory& staged, MPI_Comm comm) {
  std::optional<error> failed;
  try {
    staged.store();
    return MPI_SUCCESS;
  } catch (const error& e) {
    failed = e;
  }
  return report(*failed, comm);
}

void interposer::release_prepared(pending& r) {
  r.what.release_handles();
  const auto on = r.on;
  if (!on) return;
  {
    const std::lock_guard lock(m_requests.lock());
    on->busy = false;
    if (!on->orphaned) return;
  }
  end(*on->core);
}

void interposer::close(pending& r) {
  if (const auto last = m_requests.close(r)) end(*last);
}

}  // namespace sucl::interposer
