// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "trial.hpp"

#include "oracle.hpp"

#include <algorithm>
#include <cstring>

namespace sucl::torture {
namespace {

constexpr int tag = 5;

std::byte filling(std::size_t i) { return static_cast<std::byte>(0x5b + 31 * (i % 251)); }

// What pointers to elements must be multiples of.
std::size_t alignment_of(reference::element e) {
  switch (e.t) {
    case type::bytes: return 1;
    case type::complex_fp32: return 4;
    case type::complex_fp64:
    case type::int64_loc:
    case type::fp64_loc: return 8;
    case type::int16_loc:
    case type::int32_loc:
    case type::fp32_loc: return 4;
    default: return e.size;
  }
}

}  // namespace

std::pmr::memory_resource* image_memory() {
  static std::pmr::synchronized_pool_resource blocks({4, 4 << 20});
  return &blocks;
}

bool is_shared(kind k) {
  return k == kind::broadcast || k == kind::allreduce || k == kind::allgather ||
         k == kind::allgatherv;
}

trial::trial(pool& all, party& p, const operation& o)
    : m_pool(all),
      m_party(p),
      m_operation(o),
      m_flow(conformance::flow_of(o.call, p.self.rank, p.self.size)),
      m_memory(o.memory_of(p.self.rank, p.queue.has_value())) {
  allocate(m_send, m_flow.send_size, false);
  allocate(m_recv, m_flow.recv_size, true);
}

void trial::allocate(side& s, std::size_t elements, bool received) {
  const auto e = m_operation.element;
  s.elements = elements;
  if (conformance::is_buffer(m_memory)) {
    s.layout = conformance::layout_of(m_memory, elements);
    s.before.resize(s.layout.storage() * e.size);
    s.buffer.emplace(::sycl::range<1>(s.before.size()));
    return;
  }
  // Half of the operands at the start of a cache line, the others anywhere.
  const std::uint64_t h = reference::mix(m_operation.call.irregular + (received ? 1 : 2),
                                         static_cast<std::uint64_t>(m_party.self.rank));
  const std::size_t step = alignment_of(e);
  const std::size_t shift = h % 2 == 0 ? 0 : step * ((h >> 1) % (64 / step));
  s.before.resize(2 * guard + elements * e.size);
  s.data = m_pool.memory_of(m_memory, m_party).take(elements * e.size + shift, 64) + shift;
}

std::size_t trial::position(const side& s, std::size_t element) const {
  const std::size_t size = m_operation.element.size;
  return s.buffer ? s.layout.array_index(element) * size : guard + element * size;
}

std::vector<std::byte> trial::dense(const side& s, std::size_t at, std::size_t count) const {
  const std::size_t size = m_operation.element.size;
  std::vector<std::byte> bytes(count * size);
  if (!s.buffer && count > 0) std::memcpy(bytes.data(), &s.after[position(s, at)], count * size);
  for (std::size_t i = 0; s.buffer && i < count; ++i)
    std::memcpy(&bytes[i * size], &s.after[position(s, at + i)], size);
  return bytes;
}

void trial::make_image() {
  const std::size_t size = m_operation.element.size;
  for (side* s : {&m_send, &m_recv})
    for (std::size_t i = 0; i < s->before.size(); ++i) s->before[i] = filling(i);
  side& inputs = m_flow.send_size == 0 ? m_recv : m_send;
  std::vector<std::byte> bytes;
  for (const auto& piece : m_flow.in) {
    if (piece.count == 0) continue;
    bytes.resize(piece.count * size);
    write_inputs(m_operation, m_party.self.size, m_party.self.rank, piece.key, piece.count,
                 bytes.data());
    if (!inputs.buffer)
      std::memcpy(&inputs.before[position(inputs, piece.at)], bytes.data(), bytes.size());
    for (std::size_t i = 0; inputs.buffer && i < piece.count; ++i)
      std::memcpy(&inputs.before[position(inputs, piece.at + i)], &bytes[i * size], size);
  }
}

bool trial::has_host_address() const {
  return m_memory != conformance::device_memory &&
         (m_memory != conformance::symmetric_memory || !m_party.queue || !m_pool.on_gpu());
}

// AdaptiveCpp 24.06 takes copies within the host's memory out of the order of a GPU's queue. Where
// memory of the communicator's allocate() lies depends on what executes its operations.
bool trial::is_copied_by_host() const {
#ifdef SYCL_IMPLEMENTATION_ACPP
  if (!m_pool.on_gpu() || conformance::is_buffer(m_memory)) return false;
  const auto where = ::sycl::get_pointer_type(m_send.data, m_pool.queue().get_context());
  return where == ::sycl::usm::alloc::host || where == ::sycl::usm::alloc::unknown;
#else
  return false;
#endif
}

void trial::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (has_host_address())
    std::memcpy(to, from, bytes);
  else
    m_pool.queue().memcpy(to, from, bytes).wait();
}

void trial::write(side& s) {
  if (s.buffer) {
    ::sycl::host_accessor to(*s.buffer, ::sycl::write_only, ::sycl::no_init);
    std::memcpy(&to[0], s.before.data(), s.before.size());
  } else {
    copy(s.data - guard, s.before.data(), s.before.size());
  }
}

void trial::fill() {
  make_image();
  write(m_send);
  write(m_recv);
}

events trial::fill_on_queue() {
  make_image();
  events done;
  for (side* s : {&m_send, &m_recv}) {
    if (s->buffer || is_copied_by_host())
      write(*s);
    else
      done.push_back(m_party.queue->memcpy(s->data - guard, s->before.data(), s->before.size()));
  }
  return done;
}

void trial::read() {
  for (side* s : {&m_send, &m_recv}) {
    s->after.resize(s->before.size());
    if (s->buffer) {
      ::sycl::host_accessor from(*s->buffer, ::sycl::read_only);
      std::memcpy(s->after.data(), &from[0], s->after.size());
    } else {
      copy(s->after.data(), s->data - guard, s->after.size());
    }
  }
}

events trial::read_on_queue(const events& deps) {
  if (is_copied_by_host()) {
    for (auto e : deps) e.wait();
    m_party.queue->wait();
    read();
    return {};
  }
  events done;
  for (side* s : {&m_send, &m_recv}) {
    if (s->buffer) continue;
    s->after.resize(s->before.size());
    done.push_back(m_party.queue->memcpy(s->after.data(), s->data - guard, s->after.size(), deps));
  }
  if (m_send.buffer) read();
  return done;
}

detail::operand trial::operand_of(const side& s) const {
  detail::operand o;
  if (s.buffer) {
    o.buffer = s.buffer;
    for (std::size_t d = 0; d < 3; ++d) {
      o.extent[d] = s.layout.extent[d];
      o.offset[d] = s.layout.offset[d];
      o.range[d] = s.layout.range[d];
    }
  } else if (s.elements > 0) {
    o.pointer = s.data;
  }
  return o;
}

detail::request trial::request(kind k) {
  const auto& s = m_operation.call;
  std::size_t count = s.count;
  if (k == kind::reduce_scatter || k == kind::alltoallv || k == kind::barrier) count = 0;
  if (k == kind::allgatherv || k == kind::gatherv) count = s.in_place ? 0 : m_flow.send_size;
  if (k == kind::scatterv) count = m_flow.recv_size;
  auto r = detail::make_request<std::byte>(k, count, m_operation.op, rooted(k) ? s.root : 0);
  r.record.type = static_cast<sucl_type>(m_operation.element.t);
  r.record.element_size = m_operation.element.size;
  if (s.in_place) r.record.flags |= SUCL_FLAG_IN_PLACE;
  const bool all = k == kind::alltoallv;
  if (all || k == kind::allgatherv || k == kind::gatherv || k == kind::reduce_scatter)
    r.recv_counts = &m_flow.recv_counts;
  if (all || k == kind::allgatherv || k == kind::gatherv) r.recv_displs = &m_flow.recv_displs;
  if ((all && !s.in_place) || k == kind::scatterv) {
    r.send_counts = &m_flow.send_counts;
    r.send_displs = &m_flow.send_displs;
  }
  if (!s.in_place && k != kind::barrier) r.send = operand_of(m_send);
  if (k != kind::barrier) r.recv = operand_of(m_recv);
  return r;
}

detail::request trial::message(kind k, const conformance::message& m, int with_tag) {
  auto r = detail::make_request<std::byte>(k, m.count, op::none, m.peer);
  r.record.type = static_cast<sucl_type>(m_operation.element.t);
  r.record.element_size = m_operation.element.size;
  r.record.tag = with_tag;
  const bool sends = k != kind::recv;
  side& s = sends ? m_send : m_recv;
  (sends ? r.send : r.recv) = operand_of(s);
  if (!s.buffer && s.elements > 0)
    (sends ? r.send : r.recv).pointer = s.data + m.at * m_operation.element.size;
  if (k == kind::sendrecv) {
    r.record.recv_count = m_flow.recvs[0].count;
    r.record.source = m_flow.recvs[0].peer;
    r.recv = operand_of(m_recv);
  }
  return r;
}

// On AdaptiveCpp's CPU device operations on buffers begin and wait one after the other: see
// docs/reference/sycl-implementations.md.
bool trial::buffers_take_turns() const {
#ifdef SYCL_IMPLEMENTATION_ACPP
  return conformance::is_buffer(m_memory) &&
         !(m_party.queue && m_party.queue->get_device().is_gpu());
#else
  return false;
#endif
}

// A receive comes before its send only where each of them begins by itself. On GPUs memory of
// buffers that have ended is freed at any time, which holds up the next call until all that runs is
// done: see docs/how-to/gpus.md.
bool trial::one_after_the_other() const {
  return m_pool.messages_in_order || m_pool.on_gpu() || buffers_take_turns() ||
         (m_party.queue && m_party.queue->is_in_order());
}

std::vector<detail::request> trial::requests(bool blocks) {
  const kind k = m_operation.call.kind;
  const bool one_by_one = blocks || one_after_the_other();
  const bool alone = m_party.self.size == 1 && one_by_one;
  if (k != kind::send && k != kind::recv && k != kind::sendrecv) return {request(k)};
  if (k == kind::sendrecv || alone) return {message(kind::sendrecv, m_flow.sends[0], tag)};
  // A ring; one by one, the even ranks send first.
  const bool send_first = one_by_one ? m_party.self.rank % 2 == 0 : k == kind::send;
  std::vector<detail::request> both{message(kind::send, m_flow.sends[0], tag),
                                    message(kind::recv, m_flow.recvs[0], tag)};
  if (!send_first) std::swap(both[0], both[1]);
  return both;
}

group trial::group_of_messages() {
  group g(m_party.comm);
  for (const auto& m : m_flow.recvs) {
    auto r = message(kind::recv, m, tag);
    g.submit(r, {});
  }
  for (const auto& m : m_flow.sends) {
    auto r = message(kind::send, m, tag);
    g.submit(r, {});
  }
  return g;
}

void trial::run() {
  if (m_operation.call.kind == kind::group) return group_of_messages().run();
  for (auto& r : requests(true)) m_party.blocking->submit(r, {});
}

events trial::start(const events& deps) {
  if (m_operation.call.kind == kind::group) return {group_of_messages().submit(deps)};
  events done;
  for (auto& r : requests(false)) done.push_back(m_party.comm.submit(r, deps));
  return done;
}

std::vector<sucl::persistent> trial::make_persistent() {
  std::vector<sucl::persistent> made;
  for (auto& r : requests(false)) made.push_back(m_party.persistent->submit(r, {}));
  return made;
}

void trial::run_by(const std::function<void(const std::byte*, std::byte*)>& call) {
  call(m_send.data, m_recv.data);
}

std::string trial::verify() const {
  const auto e = m_operation.element;
  const int ranks = m_party.self.size;
  if (m_send.after != m_send.before) return "memory that is only read has changed";
  image untouched = m_recv.after;
  const auto restore = [&](std::size_t at, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t p = position(m_recv, at + i);
      std::memcpy(&untouched[p], &m_recv.before[p], e.size);
    }
  };
  for (const auto& piece : m_flow.out) {
    restore(piece.at, piece.count);
    const auto got = dense(m_recv, piece.at, piece.count);
    if (reduces(m_operation.call.kind)) {
      const auto wrong = check_folds(m_operation, ranks, piece.first, piece.last, piece.key,
                                     piece.count, got.data());
      if (!wrong.empty()) return wrong;
      continue;
    }
    std::vector<std::byte> expected(got.size());
    write_inputs(m_operation, ranks, piece.first, piece.key, piece.count, expected.data());
    const auto differs = std::mismatch(got.begin(), got.end(), expected.begin()).first;
    if (differs == got.end()) continue;
    const auto i = static_cast<std::size_t>(differs - got.begin()) / e.size;
    return "element " + std::to_string(piece.at + i) + ": got " +
           describe(e, op::none, &got[i * e.size]) + ", expected " +
           describe(e, op::none, &expected[i * e.size]) + " of rank " + std::to_string(piece.first);
  }
  if (m_flow.scrap < m_flow.recv_size) restore(m_flow.scrap, m_flow.recv_size - m_flow.scrap);
  if (untouched == m_recv.before) return {};
  const auto differs = std::mismatch(untouched.begin(), untouched.end(), m_recv.before.begin());
  return "receive memory that is none of the result has changed, at byte " +
         std::to_string(differs.first - untouched.begin()) + " of " +
         std::to_string(untouched.size()) + (m_recv.buffer ? "" : " (64 before the first element)");
}

std::uint64_t trial::hash() const {
  std::uint64_t h = 1;
  const auto add = [&](std::size_t at, std::size_t count) {
    const auto bytes = dense(m_recv, at, count);
    h = hash_elements(m_operation.element, count, bytes.data(), h);
  };
  if (m_operation.call.kind == kind::broadcast)
    add(0, m_operation.call.count);
  else
    for (const auto& piece : m_flow.out) add(piece.at, piece.count);
  return h;
}

}  // namespace sucl::torture
