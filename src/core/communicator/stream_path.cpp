// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Operations that are posted on native streams: the fast path on GPUs, whole.
#include "core/communicator/communicator.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "core/failure/device_errors.hpp"

#include <sched.h>

#include <algorithm>

namespace sucl::core {

using phase = op_request::phase;

bool communicator::orders_on_stream(const sucl_operation& record, const layouts& shape,
                                    const backend_instance& c) {
  const transfer_format& w =
      c.formats->of(record.kind, record.type, record.op, record.element_size);
  if (!w.streams && record.kind != SUCL_KIND_GROUP) return false;
  if (c.own && !c.own->orders_on_stream(record)) return false;
  const bool dense = !shape.send && !shape.recv && shape.parts.empty();
  if (dense && is_native(record, w, m_staging)) return true;
  const auto how = plan_staging(record, shape, *c.formats, m_staging);
  if (how.needed) return false;
  // Of a group, whose parts have their own types, whatever executes messages decides.
  return record.kind != SUCL_KIND_GROUP ||
         c.formats->of(SUCL_KIND_SEND, SUCL_TYPE_UINT8, SUCL_OP_NONE, 1).streams;
}

bool communicator::may_go_on_stream(const sucl_operation& record, const layouts& shape,
                                    const backend_instance& c) {
  if (!orders_on_stream(record, shape, c) || !may_post(record)) return false;
  // Steps of an operation that the host executes are still to come, and this one's would overtake.
  if (c.traits.composed && std::any_of(m_flight.begin(), m_flight.end(),
                                       [&](const op_request* n) { return n->via == &c; }))
    return false;
  // The host posts what stands before it when that is ready, and this one could come first.
  return std::all_of(m_waiting.begin(), m_waiting.end(),
                     [](op_request* n) { return n->on_stream; });
}

bool communicator::would_order_on_stream(const sucl_operation& record) {
  const std::lock_guard lock(m_mutex);
  return may_go_on_stream(record, {}, m_backends.choose(record, false));
}

bool communicator::launches(const sucl_operation& record) {
  const std::lock_guard lock(m_mutex);
  throw_if_ended();
  return m_backends.choose(record, false).traits.launches;
}

bool communicator::stages(const sucl_operation& message) {
  const std::lock_guard lock(m_mutex);
  throw_if_ended();
  const backend_instance& c = m_backends.choose(message, false);
  return !c.formats->of(message.kind, message.type, message.op, message.element_size)
              .reaches(SUCL_MEMORY_DEVICE);
}

std::optional<ticket> communicator::issue_on_stream(const sucl_operation& record,
                                                    const layouts& shape) {
  std::unique_lock lock(m_mutex);
  throw_if_ended();
  if (m_validator) return std::nullopt;  // its exchanges are made by the host
  const backend_instance& c = m_backends.choose(record, false);
  if (!may_go_on_stream(record, shape, c)) return std::nullopt;
  op_request* n = take_request();
  fill(*n, record, shape, false);
  n->via = &c;
  n->on_stream = true;
  n->watch.assisted = true;
  n->issued = clock::now();
  if (n->record.sequence) m_backends.note_issue(n->record.sequence);
  n->ready.store(false, std::memory_order_relaxed);
  n->references.store(1, std::memory_order_relaxed);
  m_waiting.push_back(n);
  return ticket(n);
}

// The backend is called without the lock, so that a thread that issues the next operation meanwhile
// does not wait; m_direct keeps all other threads from calling it.
void communicator::post_on_stream(const ticket& t, void* stream) noexcept {
  op_request& n = *t.get();
  std::unique_lock lock(m_mutex);
  while (m_direct) {
    lock.unlock();
    sched_yield();
    lock.lock();
  }
  if (n.at.load(std::memory_order_relaxed) != phase::waiting) return;  // given up meanwhile
  const bool first = m_waiting.front() == &n;
  m_waiting.erase(std::find(m_waiting.begin(), m_waiting.end(), &n));
  m_flight.push_back(&n);
  if (!is_point_to_point(n.record.kind)) m_collectives_posted = n.record.sequence;
  n.posted = clock::now();
  n.at.store(phase::posted, std::memory_order_relaxed);
  (n.via->traits.launches ? n.record.launch_target : n.record.stream) = stream;
  m_last_on_stream = n.record;
  m_direct.store(true, std::memory_order_relaxed);
  lock.unlock();
  std::optional<error_info> failure;
  try {
    if (!first && !n.via->traits.launches)
      base::fail(errc::internal, "an operation on a stream was enqueued before an earlier one");
    const backend_comm& below = n.via->via;
    if (const auto status = below.table->post(below.comm, &n.record, &n.request))
      throw_last(status, n.via->name, describe(n.record), rank());
  } catch (...) {
    failure = caught(n.record);
  }
  lock.lock();
  m_direct.store(false, std::memory_order_release);
  const bool mine = n.at.load(std::memory_order_relaxed) == phase::posted;
  if (mine && (failure || !n.request)) finish(n, failure ? &*failure : nullptr);
  deliver_done(lock);
  if (!m_waiting.empty() || !m_flight.empty()) m_job->wake(*this);
}

void communicator::check_device() {
  if (!m_device.errors) return;
  auto found = m_device.errors->pending();
  if (!found) return;
  found->rank = m_topology.rank;
  fail_everywhere(*found);
}

void communicator::fail_everywhere(const error_info& info) {
  {
    const std::lock_guard lock(m_mutex);
    if (m_failures.broken() || m_ended) return;
  }
  if (auto* peers = m_job->peers())
    peers->publish(m_id, {info.code, m_label + " has failed on rank " + std::to_string(rank()) +
                                         ": " + info.message});
  if (m_job->control()) {
    const auto held = hold_control_group();
    if (alive()) m_job->notify_failure(*this, info);
  }
  base::log(base::log_level::error, "runtime", m_label, " ends: ", info.message);
  fail_all(info);
}

// Unless something failed: then a stream may wait for a rank that is gone until it is aborted.
void communicator::drain_streams() {
  {
    const std::lock_guard lock(m_mutex);
    if (m_failures.broken()) return;
  }
  if (m_device.streams.drain) m_device.streams.drain(m_device.streams.context);
}

}  // namespace sucl::core
