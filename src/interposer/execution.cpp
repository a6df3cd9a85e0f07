// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Who executes a call, SuCL or the library, and what is learnt from it.
#include "interposer/interposer.hpp"

#include <utility>

namespace sucl::interposer {

// ---- blocking calls

int interposer::blocking(const signature& s, bool lasts, describer describe, library_call pass) {
  interposer* const self = active();
  if (!self || s.comm == MPI_COMM_NULL) return pass();
  const route& r = slot_of(s);
  const bool known = r.generation == m_generation.load(std::memory_order_acquire) && r.of == s;
  // The call_class may be measured again, because of other calls of its class.
  if (!known || (r.measured && r.measured->wants_measurement()))
    return self->serve_or_pass(s, lasts, describe, pass);
  if (r.measured && r.measured->tuner.next() == choice::sucl) {
    transfer t = describe(r.with->at);
    if (t.unequal) return self->serve_or_pass(s, lasts, describe, pass);
    if (!t.known) return pass();
    r.measured->review();
    return self->serve_else(*r.with, r.measured, t, pass);
  }
  ++*r.passed;
  if (!r.measured) return pass();
  r.measured->review();
  call_class* const measured = r.measured;  // the route may be another one's afterwards
  const int code = pass();
  if (is_refused(code)) measured->take_back();
  return code;
}

int interposer::serve_or_pass(const signature& s, bool lasts, describer describe,
                              library_call pass) {
  int code = MPI_SUCCESS;
  comm_state* const with = find(s.comm, code);
  if (!with) return code;
  comm_state& p = *with;
  transfer t;
  if (p.suitable) t = describe(p.at);
  // Where calls are measured the others may be MPI's, which says what is wrong.
  if (t.unequal && p.core && settings().interpose.trials == 0) show_others(p);
  lasts = lasts && facts_of(s.type).predefined;
  call_class* c = nullptr;
  const outcome f = classify(p, t, form::blocking, &c);
  if (f == outcome::served && (!c->tuner.decided() || c->review())) return tried(p, *c, t, pass);
  std::uint64_t& counter = counter_of(p, s.kind, f == outcome::served ? outcome::slower : f);
  // What is not known may be wrong this once.
  if (lasts && f != outcome::early && f != outcome::unknown)
    slot_of(s) = {s, m_generation.load(), &counter, &p, c};
  if (f == outcome::served && c->tuner.next() == choice::sucl) return serve_else(p, c, t, pass);
  ++counter;
  code = pass();
  if (!is_refused(code)) return code;
  if (f == outcome::early && waits_for_all(s.kind)) --p.calls;
  if (f == outcome::served) c->take_back();
  return code;
}

int interposer::tried(comm_state& p, call_class& c, transfer& t, library_call pass) {
  const std::uint64_t number = c.tuner.started();
  const choice to = c.start();
  const stopwatch time;
  found_errors errors;
  int code = MPI_SUCCESS;
  if (to == choice::mpi) {
    count(p, t.called, outcome::tried);
    code = pass();
    if (is_refused(code)) return take_back(c), code;
  } else if (const std::optional<int> served = serve(p, nullptr, t, errors)) {
    code = *served;
  } else {
    return pass();
  }
  if (c.note(number, time.seconds())) decide(p, c);
  return errors.report(code);
}

int interposer::serve_else(comm_state& p, const call_class* c, transfer& t, library_call pass) {
  found_errors errors;
  const std::optional<int> code = serve(p, c, t, errors);
  return code ? errors.report(*code) : pass();
}

// ---- calls with a request

namespace {

// What all ranks find to be another operation than theirs, or that fails on all.
transfer not_to_be_done(sucl_kind called) {
  transfer t = barrier();
  t.called = called;
  t.refused_bytes = 1;
  return t;
}

}  // namespace

int interposer::started(sucl_kind kind, MPI_Comm comm, MPI_Request* request, describer describe,
                        library_call pass) {
  interposer* const self = active();
  if (!self || comm == MPI_COMM_NULL || !request) return pass();
  int code = MPI_SUCCESS;
  comm_state* const with = self->find(comm, code);
  if (!with) return code;
  comm_state& p = *with;
  transfer t;
  if (p.suitable) t = describe(p.at);
  if (t.unequal && p.core && self->settings().interpose.trials == 0) t = not_to_be_done(kind);
  call_class* c = nullptr;
  const outcome f = self->classify(p, t, form::started, &c);
  if (f != outcome::served) {
    count(p, kind, f);
    code = pass();
    if (is_refused(code)) ++p.refused;
    return code;
  }
  const turn now = self->turn_of(*c);
  if (now.to == choice::sucl) return self->begin(p, *c, now, std::move(t), request);
  count(p, kind, now.decided ? outcome::slower : outcome::tried);
  const stopwatch time;
  code = pass();
  if (is_refused(code)) ++p.refused, self->take_back(*c);
  if (now.timed && code == MPI_SUCCESS)
    self->m_requests.watch(*request, *c, now.number, time.seconds());
  return code;
}

int interposer::persistent(sucl_kind kind, MPI_Comm comm, MPI_Request* request, describer describe,
                           library_call pass) {
  interposer* const self = active();
  if (!self || comm == MPI_COMM_NULL || !request) return pass();
  int code = MPI_SUCCESS;
  comm_state* const with = self->find(comm, code);
  if (!with) return code;
  comm_state& p = *with;
  // A library that has refused the call may say that all is well, to a handler of the program's.
  const MPI_Request before = std::exchange(*request, MPI_REQUEST_NULL);
  code = pass();
  if (code != MPI_SUCCESS || *request == MPI_REQUEST_NULL) {
    *request = before;
    p.prepared.refuse();
    ++p.refused;
    return code;
  }
  transfer t;
  if (p.suitable) t = describe(p.at);
  const outcome f = self->prepare(p, t, *request);
  if (f != outcome::served) count(p, kind, f);
  return code;
}

int interposer::leave(sucl_kind kind, MPI_Comm comm, library_call pass) {
  interposer* const self = active();
  if (!self || comm == MPI_COMM_NULL) return pass();
  int code = MPI_SUCCESS;
  comm_state* const p = self->find(comm, code);
  if (!p) return code;
  count(*p, kind, p->suitable ? outcome::unknown : outcome::unsupported_comm);
  return pass();
}

// ---- memory of devices

namespace {

/// Describes a call by the host memory that stands for a device's.
auto on_host(const device::arguments& held, interposer::describer describe) {
  return [&held, describe](comm_position at) {
    held.for_sucl();
    transfer t = describe(at);
    t.staged = held.staged();
    return t;
  };
}

}  // namespace

int interposer::blocking(const device::arguments& held, const signature& s, bool lasts,
                         describer describe, library_call pass) {
  if (held.empty()) return held.code() ? held.code() : blocking(s, lasts, describe, pass);
  note_device(s.comm, s.kind);
  return blocking(s, lasts, on_host(held, describe), [&] {
    held.for_library();
    const device::staged_memory& staged = *held.staged();
    if (!staged.at_library) return pass();
    if (const int code = load(staged, s.comm)) return code;
    const int code = pass();
    return code == MPI_SUCCESS ? store(staged, s.comm) : code;
  });
}

int interposer::started(const device::arguments& held, sucl_kind kind, MPI_Comm comm,
                        MPI_Request* request, describer describe, library_call pass) {
  if (held.empty()) return held.code() ? held.code() : started(kind, comm, request, describe, pass);
  note_device(comm, kind);
  return started(kind, comm, request, on_host(held, describe), [&] {
    held.for_library();
    const auto& staged = held.staged();
    if (!staged->at_library) return pass();
    if (const int code = load(*staged, comm)) return code;
    const int code = pass();
    if (code != MPI_SUCCESS || m_running->m_requests.keep(*request, comm, staged)) return code;
    return store(*staged, comm);
  });
}

int interposer::persistent(const device::arguments& held, sucl_kind kind, MPI_Comm comm,
                           MPI_Request* request, describer describe, library_call pass) {
  if (held.empty())
    return held.code() ? held.code() : persistent(kind, comm, request, describe, pass);
  note_device(comm, kind);
  const int code = persistent(kind, comm, request, on_host(held, describe), [&] {
    held.for_library();
    return pass();
  });
  if (code == MPI_SUCCESS && held.staged()->at_library)
    m_running->prepare_staged(comm, kind, *request, held.staged());
  return code;
}

}  // namespace sucl::interposer
