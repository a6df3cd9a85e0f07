// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/communicator/communicator_memory.hpp"

#include "base/error.hpp"
#include "base/sizes.hpp"
#include "base/system/available_memory.hpp"
#include "core/exchange/core_services.hpp"
#include "core/exchange/readiness.hpp"
#include "core/failure/setup_steps.hpp"
#include "core/operation/argument_comparison.hpp"
#include "core/operation/operation.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

namespace sucl::core {
namespace {

// Memory that all ranks of the node reach. Collective; blocks, and touches nothing that operations
// use.
sucl_region make_region(const backend_comm& provider, int rank, std::uint64_t bytes) {
  sucl_region region{};
  region.struct_size = sizeof region;
  if (const auto status = provider.table->memory_create(provider.comm, bytes, &region))
    throw_last(status, provider.table->name, "allocate", rank);
  return region;
}

// Memory of this rank alone, zeroed; null where there is none.
std::unique_ptr<void, void (*)(void*)> plain_memory(std::uint64_t bytes) {
  constexpr std::uint64_t page = 4096;
  const std::uint64_t whole = base::round_up(std::max<std::uint64_t>(bytes, 1), page);
  void* memory = whole <= base::max_bytes ? std::aligned_alloc(page, whole) : nullptr;
  if (memory) std::memset(memory, 0, whole);
  return {memory, std::free};
}

template <class Blocks>
auto block_at(Blocks& blocks, const void* memory) {
  return std::find_if(blocks.begin(), blocks.end(),
                      [&](const auto& b) { return b.memory == memory; });
}

}  // namespace

// Memory that is allocated is not written to at once, so the system would give it out though it is
// not there. Every rank gets the error of each node that has not enough. Collective.
void communicator_memory::check_room(std::uint64_t bytes) const {
  struct words {
    std::uint64_t bytes, untouched, available;
  };
  const words mine{bytes, base::allocated_memory::of_process().untouched(),
                   base::available_memory()};
  std::vector<words> all(static_cast<std::size_t>(m_context.size()));
  sucl_oob oob = m_context.oob();
  if (const auto status = services().oob_allgather(&oob, &mine, all.data(), sizeof mine))
    throw_last(status, "", "allocate", m_context.rank());
  const std::vector<int>& node_of = m_context.where.node_of;
  for (int node = 0; node < m_context.where.nodes; ++node) {
    std::vector<int> ranks;
    std::set<std::int64_t> processes;
    std::uint64_t asked = 0, promised = 0, available = base::max_bytes;
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (node_of[r] != node) continue;
      ranks.push_back(static_cast<int>(r));
      asked = base::sum(asked, all[r].bytes);
      if (processes.insert(m_context.where.members[r].process).second)
        promised = base::sum(promised, all[r].untouched);
      available = std::min(available, all[r].available);
    }
    const std::uint64_t left = available > promised ? available - promised : 0;
    if (asked <= left) continue;
    base::fail(errc::out_of_memory,
               ranks_text(ranks) + (ranks.size() == 1 ? " asks for " : " ask for ") +
                   std::to_string(asked) + " bytes, and the node has " + std::to_string(left) +
                   " that are free and not allocated already",
               "Allocate less, free other memory first, or raise the memory limit of the job");
  }
}

// Waits until no caller is inside a backend.
void communicator_memory::await_exit(issue_queue::held_lock& lock) {
  m_queue.await_exit(lock);
  m_queue.throw_if_ended();
}

// Kernels know one block by its address.
communicator_memory::blocks::const_iterator communicator_memory::allocated_at(
    const void* memory) const {
  const bool once =
      !m_context.backends.device_memory() || block_at(m_attached, memory) == m_attached.end();
  return once ? block_at(m_allocated, memory) : m_allocated.end();
}

std::uint64_t communicator_memory::number_of_allocated(const void* memory) const {
  const auto lock = m_queue.lock();
  const auto known = allocated_at(memory);
  return known == m_allocated.end() ? 0 : known->number;
}

std::uint64_t communicator_memory::number_of_attached(const void* memory) const {
  const auto lock = m_queue.lock();
  const auto known = block_at(m_attached, memory);
  if (known == m_attached.end()) return 0;
  const auto is_it = [&](const block& b) { return b.memory == memory; };
  const bool once = std::none_of(known + 1, m_attached.end(), is_it);
  return once ? known->number : arriving_call::any_block;
}

ticket communicator_memory::user_of(const void* memory) const {
  const auto lock = m_queue.lock();
  for (const blocks* all : {&m_allocated, &m_attached})
    if (const auto known = block_at(*all, memory); known != all->end())
      if (ticket user = m_queue.user_of(memory, known->bytes)) return user;
  return {};
}

void communicator_memory::check_not_freed(const sucl_operation& record, std::uint64_t since) const {
  const auto lock = m_queue.lock();
  for (const block& b : m_freed)
    if (b.number > since &&
        may_touch(record, m_context.rank(), m_context.size(), b.memory, b.bytes))
      base::fail(errc::invalid_memory,
                 "the memory of this " + std::string(name(static_cast<kind>(record.kind))) +
                     " has been deallocated since it was made",
                 "Make the operation anew, on memory that is still there");
}

bool communicator_memory::is_in_use(const void* memory) const {
  return static_cast<bool>(user_of(memory));
}

// An operation that fails is reported by what the caller does next.
void communicator_memory::await_use(const void* memory) const {
  const setup_pause operations;
  while (const ticket user = user_of(memory)) m_queue.assist(user);
}

// Each rank has its own, or all get the error of the one that has none.
void* communicator_memory::allocate_plain(std::uint64_t bytes) {
  auto memory = plain_memory(bytes);
  readiness mine;
  if (!memory) {
    mine.wrong.emplace();
    mine.wrong->code = errc::out_of_memory;
    mine.wrong->message = "there is no memory for " + std::to_string(bytes) + " bytes";
    mine.wrong->hint = "Allocate less, or free other memory first";
  }
  agree(m_context.oob(), m_context.rank(), m_context.size(), mine, "cannot allocate");
  const auto lock = m_queue.lock();
  m_plain.push_back(std::move(memory));
  return m_plain.back().get();
}

void* communicator_memory::allocate(std::uint64_t bytes) {
  auto lock = m_queue.lock();
  m_queue.throw_if_ended();
  const std::uint64_t sequence = m_queue.collectives(), number = ++m_allocations;
  built_in_comm* const device = m_context.backends.device_memory();
  // Operations that are in flight must go on meanwhile: other ranks may wait for them.
  lock.unlock();
  void* const memory =
      device ? device->allocate(bytes, sequence) : allocate_on_host(bytes, number, sequence);
  lock.lock();
  m_allocated.push_back({memory, number, bytes});
  return memory;
}

void* communicator_memory::allocate_on_host(std::uint64_t bytes, std::uint64_t number,
                                            std::uint64_t sequence) {
  check_room(bytes);
  const backend_comm provider = m_context.backends.shared_memory();
  if (!provider.table) return allocate_plain(bytes);
  const sucl_region region = make_region(provider, m_context.rank(), bytes);
  base::allocated_memory::of_process().add(region.base, region.bytes);
  auto lock = m_queue.lock();
  m_shared.push_back(region.base);
  await_exit(lock);
  m_calls.forget();
  for (const backend_instance& b : m_context.backends.all())
    if (b.own) b.own->add_memory(region, number, sequence);
  return region.base;
}

bool communicator_memory::attach(void* memory, std::uint64_t bytes) {
  auto lock = m_queue.lock();
  m_queue.throw_if_ended();
  built_in_comm* const device = m_context.backends.device_memory();
  const std::uint64_t sequence = m_queue.collectives(), number = ++m_attachments;
  lock.unlock();  // as in allocate()
  readiness mine;
  if (bytes > base::max_bytes || (!memory && bytes > 0)) {
    const bool null = !memory;
    mine.wrong.emplace();
    mine.wrong->code = null ? errc::invalid_memory : errc::invalid_count;
    mine.wrong->message = null ? "the memory to register is null"
                               : "no memory has as many bytes as are to be registered";
    mine.wrong->hint = "Pass an allocation and the number of its elements, or nullptr and 0";
  }
  agree(m_context.oob(), m_context.rank(), m_context.size(), mine, "cannot register memory");
  const bool reached = device && device->attach(memory, bytes, sequence);
  lock.lock();
  m_attached.push_back({memory, number, bytes});
  return reached;
}

void communicator_memory::detach(void* memory) {
  auto lock = m_queue.lock();
  await_exit(lock);
  const auto known = block_at(m_attached, memory);
  if (known == m_attached.end())
    base::fail(errc::invalid_memory, "the pointer is not one that this communicator has registered",
               "Pass what register_memory() was given, once, to the same communicator");
  m_attached.erase(known);
  m_calls.forget();
  if (built_in_comm* device = m_context.backends.device_memory()) device->free(memory);
}

void communicator_memory::deallocate(void* memory, std::uint64_t change) {
  auto lock = m_queue.lock();
  await_exit(lock);
  const auto known = allocated_at(memory);
  if (known == m_allocated.end())
    base::fail(errc::invalid_memory, "the pointer is not one that this communicator allocated",
               "Pass what allocate() returned, once, to the same communicator");
  constexpr std::size_t freed_kept = 256;
  if (m_freed.size() == freed_kept) m_freed.erase(m_freed.begin());
  m_freed.push_back({memory, change, known->bytes});
  m_allocated.erase(known);
  const auto plain = std::find_if(m_plain.begin(), m_plain.end(),
                                  [&](const auto& own) { return own.get() == memory; });
  if (plain != m_plain.end()) return void(m_plain.erase(plain));
  m_calls.forget();
  built_in_comm* const device = m_context.backends.device_memory();
  if (device && device->free(memory)) return;
  sucl_region region{};
  bool found = false;
  for (const backend_instance& b : m_context.backends.all())
    if (b.own && b.own->remove_memory(memory, m_queue.collectives(), &region)) found = true;
  if (!found) return;
  const backend_comm provider = m_context.backends.shared_memory();
  base::allocated_memory::of_process().remove(memory);
  std::erase(m_shared, memory);
  provider.table->memory_destroy(provider.comm, &region);
}

std::byte* communicator_memory::common_memory(std::uint64_t bytes) {
  const backend_comm provider = m_context.backends.shared_memory();
  if (!provider.table) return nullptr;
  m_common.push_back(make_region(provider, m_context.rank(), bytes));
  void* const* peers = m_common.back().peers;
  return std::all_of(peers, peers + m_context.size(), [](const void* p) { return p != nullptr; })
             ? static_cast<std::byte*>(peers[0])
             : nullptr;
}

void communicator_memory::release() {
  const backend_comm provider = m_context.backends.shared_memory();
  for (sucl_region& r : m_common) provider.table->memory_destroy(provider.comm, &r);
  m_common.clear();
  for (const void* base : m_shared) base::allocated_memory::of_process().remove(base);
  m_shared.clear();
}

}  // namespace sucl::core
