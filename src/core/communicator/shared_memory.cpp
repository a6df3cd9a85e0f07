// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Memory of communicators that all ranks of a node reach.
#include "backends/device_kernels/backend.hpp"
#include "backends/shm_p2p/backend.hpp"
#include "backends/shm_plan/backend.hpp"
#include "base/error.hpp"
#include "base/sizes.hpp"
#include "core/communicator/communicator.hpp"
#include "process/process.hpp"

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

// Memory of this rank alone, zeroed; null where there is none.
std::unique_ptr<void, void (*)(void*)> plain_memory(std::uint64_t bytes) {
  constexpr std::uint64_t page = 4096;
  const std::uint64_t whole = base::round_up(std::max<std::uint64_t>(bytes, 1), page);
  void* memory = whole <= base::max_bytes ? std::aligned_alloc(page, whole) : nullptr;
  if (memory) std::memset(memory, 0, whole);
  return {memory, std::free};
}

}  // namespace

// Each rank has its own, or all are told who has none.
void* communicator::allocate_plain(std::uint64_t bytes) {
  auto memory = plain_memory(bytes);
  const auto votes =
      exchange({m_process->control(), m_group}, size(), memory ? "" : std::to_string(bytes));
  for (std::size_t r = 0; r < votes.size(); ++r)
    if (!votes[r].empty())
      base::fail(errc::out_of_memory,
                 "rank " + std::to_string(r) + " has no memory for " + votes[r] + " bytes",
                 "Allocate less, or free other memory first");
  const std::lock_guard lock(m_mutex);
  m_plain.push_back(std::move(memory));
  return m_plain.back().get();
}

void* communicator::allocate(std::uint64_t bytes) {
  std::unique_lock lock(m_mutex);
  throw_if_ended();
  const std::uint64_t sequence = m_collectives, number = ++m_allocations;
  if (const auto& kernels = m_backends.kernels();
      kernels.table && !kernels_of(kernels).device().on_host) {
    lock.unlock();  // as below
    return kernels_of(kernels).memory().add(bytes, sequence);
  }
  // Operations that are in flight must go on meanwhile: other ranks may wait for them.
  const bool plain = !m_backends.plans().table;
  lock.unlock();
  if (plain) return allocate_plain(bytes);
  const sucl_region region = make_mapped(m_backends.memory_provider(), rank(), bytes);
  lock.lock();
  wait_for_direct(lock);
  ++m_cache_epoch;
  add_mapped(m_backends.plans(), region, number, sequence);
  if (m_backends.messages().table) add_message_memory(m_backends.messages(), region, number);
  return region.base;
}

bool communicator::attach(void* memory, std::uint64_t bytes) {
  std::unique_lock lock(m_mutex);
  throw_if_ended();
  const auto& kernels = m_backends.kernels();
  if (!kernels.table || kernels_of(kernels).device().on_host) return false;
  const std::uint64_t sequence = m_collectives;
  lock.unlock();  // as in allocate()
  return kernels_of(kernels).memory().attach(memory, bytes, sequence);
}

void communicator::detach(void* memory) {
  std::unique_lock lock(m_mutex);
  wait_for_direct(lock);
  ++m_cache_epoch;
  if (m_backends.kernels().table) kernels_of(m_backends.kernels()).memory().remove(memory);
}

void communicator::deallocate(void* memory) {
  std::unique_lock lock(m_mutex);
  wait_for_direct(lock);
  const auto plain = std::find_if(m_plain.begin(), m_plain.end(),
                                  [&](const auto& known) { return known.get() == memory; });
  if (plain != m_plain.end()) return void(m_plain.erase(plain));
  ++m_cache_epoch;
  if (m_backends.kernels().table && kernels_of(m_backends.kernels()).memory().remove(memory))
    return;
  if (m_backends.messages().table) remove_message_memory(m_backends.messages(), memory);
  if (!m_backends.plans().table ||
      !remove_mapped(m_backends.plans(), m_backends.memory_provider(), memory, m_collectives))
    base::fail(errc::invalid_memory, "the pointer is not one that this communicator allocated",
               "Pass what allocate() returned, once, to the same communicator");
}

std::byte* communicator::common_memory(std::uint64_t bytes) {
  if (!m_backends.plans().table) return nullptr;
  m_common.push_back(make_mapped(m_backends.memory_provider(), rank(), bytes));
  void* const* peers = m_common.back().peers;
  return std::all_of(peers, peers + size(), [](const void* p) { return p != nullptr; })
             ? static_cast<std::byte*>(peers[0])
             : nullptr;
}

}  // namespace sucl::core
