// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Memory of communicators that all ranks of a node reach.
#include "base/error.hpp"
#include "base/sizes.hpp"
#include "core/communicator/communicator.hpp"
#include "core/exchange/readiness.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

namespace sucl::core {

// Until no caller is inside a backend.
void communicator::wait_for_direct(std::unique_lock<biased_mutex>& lock) {
  while (m_direct) {
    lock.unlock();
    sched_yield();
    lock.lock();
  }
  throw_if_ended();
}

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

}  // namespace

// Each rank has its own, or all get the error of the one that has none.
void* communicator::allocate_plain(std::uint64_t bytes) {
  auto memory = plain_memory(bytes);
  readiness mine;
  if (!memory) {
    mine.wrong.emplace();
    mine.wrong->code = errc::out_of_memory;
    mine.wrong->message = "there is no memory for " + std::to_string(bytes) + " bytes";
    mine.wrong->hint = "Allocate less, or free other memory first";
  }
  agree({m_job->control(), m_group}, rank(), size(), mine, "cannot allocate");
  const std::lock_guard lock(m_mutex);
  m_plain.push_back(std::move(memory));
  return m_plain.back().get();
}

void* communicator::allocate(std::uint64_t bytes) {
  std::unique_lock lock(m_mutex);
  throw_if_ended();
  const std::uint64_t sequence = m_collectives, number = ++m_allocations;
  if (built_in_comm* device = m_backends.device_memory()) {
    lock.unlock();  // as below
    return device->allocate(bytes, sequence);
  }
  // Operations that are in flight must go on meanwhile: other ranks may wait for them.
  const backend_comm provider = m_backends.shared_memory();
  lock.unlock();
  if (!provider.table) return allocate_plain(bytes);
  const sucl_region region = make_region(provider, rank(), bytes);
  lock.lock();
  wait_for_direct(lock);
  ++m_cache_epoch;
  for (const backend_instance& b : m_backends.all())
    if (b.own) b.own->add_memory(region, number, sequence);
  return region.base;
}

bool communicator::attach(void* memory, std::uint64_t bytes) {
  std::unique_lock lock(m_mutex);
  throw_if_ended();
  built_in_comm* const device = m_backends.device_memory();
  if (!device) return false;
  const std::uint64_t sequence = m_collectives;
  lock.unlock();  // as in allocate()
  return device->attach(memory, bytes, sequence);
}

void communicator::detach(void* memory) {
  std::unique_lock lock(m_mutex);
  wait_for_direct(lock);
  ++m_cache_epoch;
  if (built_in_comm* device = m_backends.device_memory()) device->free(memory);
}

void communicator::deallocate(void* memory) {
  std::unique_lock lock(m_mutex);
  wait_for_direct(lock);
  const auto plain = std::find_if(m_plain.begin(), m_plain.end(),
                                  [&](const auto& known) { return known.get() == memory; });
  if (plain != m_plain.end()) return void(m_plain.erase(plain));
  ++m_cache_epoch;
  built_in_comm* const device = m_backends.device_memory();
  if (device && device->free(memory)) return;
  sucl_region region{};
  bool found = false;
  for (const backend_instance& b : m_backends.all())
    if (b.own && b.own->remove_memory(memory, m_collectives, &region)) found = true;
  if (!found)
    base::fail(errc::invalid_memory, "the pointer is not one that this communicator allocated",
               "Pass what allocate() returned, once, to the same communicator");
  const backend_comm provider = m_backends.shared_memory();
  provider.table->memory_destroy(provider.comm, &region);
}

std::byte* communicator::common_memory(std::uint64_t bytes) {
  const backend_comm provider = m_backends.shared_memory();
  if (!provider.table) return nullptr;
  m_common.push_back(make_region(provider, rank(), bytes));
  void* const* peers = m_common.back().peers;
  return std::all_of(peers, peers + size(), [](const void* p) { return p != nullptr; })
             ? static_cast<std::byte*>(peers[0])
             : nullptr;
}

}  // namespace sucl::core
