// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/fast_path/stream_path.hpp"

#include "base/error.hpp"
#include "core/operation/operation.hpp"
#include "core/support/postponed_ends.hpp"

namespace sucl::core {

// Whether the backend can order the operation on a stream, natively.
bool stream_path::orders(const sucl_operation& record, const layouts& layout,
                         const backend_instance& c) const {
  const transfer_format& w =
      c.formats->of(record.kind, record.type, record.op, record.element_size);
  if (!w.streams && record.kind != SUCL_KIND_GROUP) return false;
  if (c.own && !c.own->orders_on_stream(record)) return false;
  const bool dense = !layout.send && !layout.recv && layout.parts.empty();
  if (dense && is_native(record, w, m_context.stages)) return true;
  if (plan_staging(record, layout, *c.formats, m_context.stages).needed) return false;
  // The parts of a group have their own types, so the backend of messages decides.
  return record.kind != SUCL_KIND_GROUP ||
         c.formats->of(SUCL_KIND_SEND, SUCL_TYPE_UINT8, SUCL_OP_NONE, 1).streams;
}

bool stream_path::would_order(const sucl_operation& record) {
  const auto lock = m_queue.lock();
  const backend_instance& c = m_context.backends.choose(record, false);
  return orders(record, {}, c) && m_queue.may_follow_on_stream(record, c);
}

bool stream_path::launches(const sucl_operation& record) {
  const auto lock = m_queue.lock();
  m_queue.throw_if_ended();
  return m_context.backends.choose(record, false).traits.launches;
}

bool stream_path::launches_by_address(const sucl_operation& record) {
  const auto lock = m_queue.lock();
  m_queue.throw_if_ended();
  const backend_instance& c = m_context.backends.choose(record, false);
  return c.traits.launches && c.own && c.own->needs_addresses(record);
}

bool stream_path::stages(const sucl_operation& message) {
  const auto lock = m_queue.lock();
  m_queue.throw_if_ended();
  const backend_instance& c = m_context.backends.choose(message, false);
  return !c.formats->of(message.kind, message.type, message.op, message.element_size)
              .reaches(SUCL_MEMORY_DEVICE);
}

std::optional<ticket> stream_path::issue(const sucl_operation& record, const layouts& layout) {
  end_postponed();
  const auto lock = m_queue.lock();
  m_queue.throw_if_ended();
  if (m_queue.validation().active()) return std::nullopt;  // its exchanges are made by the host
  const backend_instance& c = m_context.backends.choose(record, false);
  if (!orders(record, layout, c) || !m_queue.may_follow_on_stream(record, c)) return std::nullopt;
  return m_queue.append_on_stream(record, layout, c);
}

void stream_path::post(const ticket& t, void* target) noexcept {
  op_request& n = *t.get();
  auto lock = m_queue.lock();
  bool first = false;
  if (!m_queue.enter_with_stream(n, lock, first)) return;
  (n.via->traits.launches ? n.record.launch_target : n.record.stream) = target;
  m_last = n.record;
  m_last_turn = n.turn;
  lock.unlock();
  std::optional<error_info> failure;
  try {
    if (!first && !n.via->traits.launches)
      base::fail(errc::internal, "an operation on a stream was enqueued before an earlier one");
    const backend_comm& below = n.via->via;
    if (const auto status = below.table->post(below.comm, &n.record, &n.request))
      throw_last(status, n.via->name, describe(n.record), m_context.rank());
  } catch (...) {
    failure = m_queue.caught(n.record);
  }
  lock.lock();
  m_queue.leave_with_stream(n, failure, lock);
}

// Steps of a composed backend would be captured by communicators that count none of it, and a layer
// would take each replay for none.
bool stream_path::capture(captured_operations& into, const sucl_operation& record,
                          const layouts& layout, void* target, bool is_stream) {
  auto lock = m_queue.lock();
  m_queue.await_exit(lock);
  m_queue.throw_if_ended();
  const backend_instance& c = m_context.backends.choose(record, false);
  if (m_queue.validation().active() || is_point_to_point(record.kind) || c.layered ||
      c.traits.composed || c.traits.launches == is_stream || !orders(record, layout, c))
    return false;
  if (c.traits.launches && !into.kernels) {
    if (!c.own || !c.own->begin_capture()) return false;
    into.kernels = &c;
  }
  auto& o = into.all.emplace_back();
  o.record = record;
  keep_arrays(o.record, m_context.size(), o.arrays);
  o.record.sequence = m_queue.collectives() + 1;  // says which memory it may be on
  (is_stream ? o.record.stream : o.record.launch_target) = target;
  sucl_request* request = nullptr;
  if (const auto status = c.via.table->post(c.via.comm, &o.record, &request))
    throw_last(status, c.name, describe(o.record), m_context.rank());
  o.record.stream = o.record.launch_target = nullptr;
  return request == nullptr;
}

void stream_path::end_capture(captured_operations& captured) {
  const auto lock = m_queue.lock();
  if (captured.kernels) captured.of_kernels = captured.kernels->own->end_capture();
}

bool stream_path::may_replay(const captured_operations& captured) {
  const auto lock = m_queue.lock();
  m_queue.throw_if_ended();
  return m_queue.idle() &&
         (!captured.kernels || captured.kernels->own->may_replay(captured.of_kernels));
}

// They are calls like others, except that the program enqueues them.
std::optional<graph_base> stream_path::replay(captured_operations& captured) {
  auto lock = m_queue.lock();
  m_queue.await_exit(lock);
  m_queue.throw_if_ended();
  for (auto& o : captured.all) {
    o.record.tag = m_queue.call_tag(false);
    m_queue.note_enqueued(o.record);
  }
  m_last = captured.all.back().record;
  m_last_turn = 0;
  if (!captured.kernels) return std::nullopt;
  return captured.kernels->own->replay(captured);
}

void stream_path::drain() {
  {
    const auto lock = m_queue.lock();
    if (m_queue.broken()) return;
  }
  const stream_work& streams = m_context.device.streams;
  if (streams.drain) streams.drain(streams.context);
}

void stream_path::add_to(progress_status& s) const {
  const stream_work& streams = m_context.device.streams;
  if (s.busy || !streams.pending_since) return;
  if (const auto since = streams.pending_since(streams.context)) {
    s.busy = true;
    s.oldest = m_last;
    // There may be messages among them, which have no numbers: then it is a smaller one, and fewer
    // ranks are late.
    const std::size_t all = streams.unfinished ? streams.unfinished(streams.context) : 0;
    if (all > 0 && m_last_turn >= all) s.turn = m_last_turn - (all - 1);
    // The parts of a group were the caller's.
    if (m_last.kind != SUCL_KIND_GROUP) s.peers = peers_of(m_last);
    s.on_stream = true;
    s.since = *since;
  } else {
    s.held = streams.is_held(streams.context);
  }
}

}  // namespace sucl::core
