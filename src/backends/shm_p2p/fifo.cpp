// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "backends/shm_p2p/fifo.hpp"

namespace sucl::core {

using fifo_detail::at;

namespace {

constexpr std::uint64_t ring_bytes = fifo_layout::cells * fifo_layout::line;

// Where a cell begins, counted from the begin of the FIFO.
constexpr std::uint64_t cell(std::uint64_t number) {
  return fifo_layout::ring + number % fifo_layout::cells * fifo_layout::line;
}

// Bytes of the data that follow an envelope before the ring begins anew.
constexpr std::uint64_t straight(std::uint64_t number) {
  return ring_bytes - (number % fifo_layout::cells * fifo_layout::line + fifo_layout::head);
}

constexpr std::uint64_t reply_at(std::uint64_t number) {
  return fifo_layout::replies + number % fifo_layout::reply_count * fifo_layout::line;
}

}  // namespace

bool fifo_sender::put(const envelope& e, const void* data, std::uint64_t bytes) {
  const std::uint64_t count = layout::cells_of(bytes);
  const auto room = [&] { return m_written + count + 1 - m_freed <= layout::cells; };
  if (!room()) {
    m_freed = at(m_base, layout::freed).load(std::memory_order_acquire);
    if (!room()) return false;
  }
  // What lies in the next cell may be data that equals its number.
  at(m_base, cell(m_written + count)).store(0, std::memory_order_relaxed);
  std::byte* here = m_base + cell(m_written);
  std::memcpy(here + sizeof(std::uint64_t), &e, sizeof e);
  const std::uint64_t first = std::min(bytes, straight(m_written));
  if (first > 0) std::memcpy(here + layout::head, data, first);
  if (bytes > first)
    std::memcpy(m_base + layout::ring, static_cast<const std::byte*>(data) + first, bytes - first);
  at(m_base, cell(m_written)).store(m_written + 1, std::memory_order_release);
  m_written += count;
  return true;
}

bool fifo_sender::next(rendezvous_reply& o) {
  if (at(m_base, reply_at(m_seen)).load(std::memory_order_acquire) != m_seen + 1) return false;
  std::memcpy(&o, m_base + reply_at(m_seen) + sizeof(std::uint64_t), sizeof o);
  if (++m_seen % (layout::reply_count / 4) == 0)
    at(m_base, layout::seen).store(m_seen, std::memory_order_release);
  return true;
}

std::byte* fifo_sender::empty_chunk() {
  if (m_filled - m_taken == layout::chunk_count) {
    m_taken = at(m_base, layout::taken).load(std::memory_order_acquire);
    if (m_filled - m_taken == layout::chunk_count) return nullptr;
  }
  return m_base + layout::chunks + m_filled % layout::chunk_count * layout::chunk_bytes;
}

bool fifo_receiver::peek(envelope& e) const {
  if (at(m_base, cell(m_read)).load(std::memory_order_acquire) != m_read + 1) return false;
  std::memcpy(&e, m_base + cell(m_read) + sizeof(std::uint64_t), sizeof e);
  return true;
}

void fifo_receiver::read(void* to, std::uint64_t bytes) const {
  const std::uint64_t first = std::min(bytes, straight(m_read));
  if (first > 0) std::memcpy(to, m_base + cell(m_read) + layout::head, first);
  if (bytes > first)
    std::memcpy(static_cast<std::byte*>(to) + first, m_base + layout::ring, bytes - first);
}

void fifo_receiver::pop(std::uint64_t bytes) {
  m_read += layout::cells_of(bytes);
  // The sender reads this only where it has no room: not every message is acknowledged.
  if (m_read - m_freed < layout::cells / 8) return;
  m_freed = m_read;
  at(m_base, layout::freed).store(m_freed, std::memory_order_release);
}

bool fifo_receiver::reply(const rendezvous_reply& o) {
  if (m_given - m_seen == layout::reply_count) {
    m_seen = at(m_base, layout::seen).load(std::memory_order_acquire);
    if (m_given - m_seen == layout::reply_count) return false;
  }
  std::memcpy(m_base + reply_at(m_given) + sizeof(std::uint64_t), &o, sizeof o);
  at(m_base, reply_at(m_given)).store(m_given + 1, std::memory_order_release);
  ++m_given;
  return true;
}

const std::byte* fifo_receiver::full_chunk() {
  if (m_filled == m_taken) {
    m_filled = at(m_base, layout::filled).load(std::memory_order_acquire);
    if (m_filled == m_taken) return nullptr;
  }
  return m_base + layout::chunks + m_taken % layout::chunk_count * layout::chunk_bytes;
}

}  // namespace sucl::core
