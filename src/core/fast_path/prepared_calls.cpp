// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/fast_path/prepared_calls.hpp"

#include "core/operation/operation.hpp"
#include "core/support/postponed_ends.hpp"

namespace sucl::core {
namespace {

const layouts contiguous;

}  // namespace

bool prepared_calls::is_unstaged(const sucl_operation& record, const backend_instance& c) const {
  const transfer_format& w =
      c.formats->of(record.kind, record.type, record.op, record.element_size);
  return is_native(record, w, m_context.stages) ||
         !plan_staging(record, {}, *c.formats, m_context.stages).needed;
}

bool prepared_calls::run(persistent_call& call) {
  if (!call.prepared) {
    call.record.sequence = m_queue.collectives() + 1;  // says which memory it may be on
    call.record.tag = m_queue.call_tag(call.blocking);
    call.signature = m_queue.signature_hash(call.record);
    const bool may = call.via->own && !call.via->layered;
    call.prepared = may ? call.via->own->prepare(call.record) : nullptr;
  }
  try {
    if (!*call.prepared || !call.via->own->run(**call.prepared)) return false;
  } catch (const error&) {
    m_queue.note_failed(call.record);
    m_queue.note_reported();
    if (m_queue.broken()) throw error(*m_queue.broken());
    throw;
  }
  m_queue.note_executed(call.record, call.signature, call.noted);
  return true;
}

issue_result prepared_calls::issue_locked(persistent_call& call, const observer& watch,
                                          issue_queue::held_lock& lock) {
  m_queue.throw_if_ended();
  if (m_queue.idle() && !is_point_to_point(call.record.kind)) {
    m_queue.bias_to_me();
    if (run(call)) return {ticket(), true};
  }
  return m_queue.issue(call.record, contiguous, true, watch, false, lock);
}

std::optional<issue_result> prepared_calls::issue(const sucl_operation& requested,
                                                  const observer& watch) {
  end_postponed();
  auto lock = m_queue.lock();
  persistent_call* const known = m_calls.find(requested, false);
  if (!known) return std::nullopt;
  return issue_locked(*known, watch, lock);
}

issue_result prepared_calls::issue(persistent_call& call, const observer& watch) {
  end_postponed();
  auto lock = m_queue.lock();
  if (m_calls.holds(call)) return issue_locked(call, watch, lock);
  m_queue.throw_if_ended();
  if (may_prepare()) {
    const backend_instance& c = m_context.backends.choose(call.record, false);
    if (is_unstaged(call.record, c)) {
      m_calls.note(call, c);
      call.prepared.reset();
    }
  }
  return m_queue.issue(call.record, contiguous, true, watch, false, lock);
}

void prepared_calls::remember_issued(const sucl_operation& requested,
                                     const sucl_operation& record) {
  auto lock = m_queue.lock();
  if (m_queue.ended() || m_queue.broken() || !may_prepare()) return;
  const backend_instance& c = m_context.backends.choose(record, false);
  if (is_unstaged(record, c)) m_calls.remember(requested, record, false, c);
}

}  // namespace sucl::core
