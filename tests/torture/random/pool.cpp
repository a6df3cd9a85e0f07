// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "pool.hpp"

#include "support/own_device.hpp"

#include <cstdlib>
#include <new>
#include <stdexcept>

namespace sucl::torture {
namespace {

// Both operands of a step, gaps between blocks and guards.
constexpr std::size_t arena_bytes = 3 * max_bytes;

class system_arena : public arena {
 public:
  system_arena() : arena(static_cast<std::byte*>(std::malloc(arena_bytes)), arena_bytes) {
    if (m_data == nullptr) throw std::bad_alloc();
  }
  ~system_arena() override { std::free(m_data); }
};

class usm_arena : public arena {
 public:
  usm_arena(const ::sycl::queue& q, ::sycl::usm::alloc kind)
      : arena(static_cast<std::byte*>(::sycl::malloc(arena_bytes, q, kind)), arena_bytes),
        m_queue(q) {
    if (m_data == nullptr) throw std::bad_alloc();
  }
  ~usm_arena() override { ::sycl::free(m_data, m_queue); }

 private:
  ::sycl::queue m_queue;
};

class symmetric_arena : public arena {
 public:
  // Ends with its communicator, unless it is `own`.
  symmetric_arena(communicator& comm, std::size_t bytes, bool own)
      : arena(comm.allocate<std::byte>(bytes), bytes) {
    if (own) m_communicator = comm;
  }
  ~symmetric_arena() override {
    if (m_communicator) m_communicator.deallocate(m_data);
  }

 private:
  communicator m_communicator;
};

}  // namespace

std::byte* arena::take(std::size_t bytes, std::size_t alignment) {
  std::size_t begin = m_used + guard;
  begin += (alignment - (reinterpret_cast<std::uintptr_t>(m_data) + begin) % alignment) % alignment;
  if (begin + bytes + guard > m_size) throw std::logic_error("a step needs more than an arena");
  m_used = begin + bytes + guard;
  return m_data + begin;
}

pool::pool(runtime& rt)
    : m_rank(rt.rank()), m_size(rt.size()), m_queue(testing::own_device(rt.rank())) {
  m_in_order = ::sycl::queue(m_queue.get_context(), m_queue.get_device(),
                             ::sycl::property::queue::in_order{});
  using conformance::device_memory;
  m_arenas[conformance::system_memory] = std::make_unique<system_arena>();
  m_arenas[conformance::device_memory] =
      std::make_unique<usm_arena>(m_queue, ::sycl::usm::alloc::device);
  m_arenas[conformance::host_memory] =
      std::make_unique<usm_arena>(m_queue, ::sycl::usm::alloc::host);
  m_arenas[conformance::shared_memory] =
      std::make_unique<usm_arena>(m_queue, ::sycl::usm::alloc::shared);
  const auto put = [this](group_of g, communicator comm, std::optional<::sycl::queue> queue) {
    of(g) = make(std::move(comm), g, std::move(queue));
  };
  communicator world = rt.world(m_queue);
  put(group_of::world, world, m_queue);
  put(group_of::in_order, rt.world(m_in_order), m_in_order);
  put(group_of::queueless, rt.world(), {});
  put(group_of::copy, world.dup(), m_queue);
  put(group_of::reversed, world.split(0, -m_rank), m_queue);
  put(group_of::parity, world.split(m_rank % 2, m_rank), m_queue);
  put(group_of::but_last, world.split(m_rank == m_size - 1 ? -1 : 0), m_queue);
}

party pool::make(communicator comm, group_of g, std::optional<::sycl::queue> queue) {
  party p;
  p.self = membership_of(g, m_rank, m_size);
  if ((p.self.size > 0) != static_cast<bool>(comm) ||
      (comm && (comm.rank() != p.self.rank || comm.size() != p.self.size)))
    throw std::logic_error(std::string("the communicator '") + name(g) + "' is not as it ought");
  p.queue = std::move(queue);
  if (!comm) return p;
  p.blocking.emplace(comm.blocking());
  p.persistent.emplace(comm.persistent());
  p.symmetric = std::make_unique<symmetric_arena>(comm, arena_bytes, false);
  p.comm = std::move(comm);
  return p;
}

arena& pool::memory_of(memory m, party& p) {
  return m == conformance::symmetric_memory ? *p.symmetric : *m_arenas.at(m);
}

void pool::reset() {
  for (auto& [kind, memory] : m_arenas) memory->reset();
  for (auto& p : m_parties)
    if (p.symmetric) p.symmetric->reset();
}

std::unique_ptr<arena> pool::allocate(party& p, std::size_t bytes) {
  return std::make_unique<symmetric_arena>(p.comm, bytes, true);
}

party pool::renew(group_of g, bool split) {
  party& old = of(g);
  const int colour = 3, key = old.self.rank;
  return make(split ? old.comm.split(colour, key) : old.comm.dup(), g, old.queue);
}

}  // namespace sucl::torture
