// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Memory of a communicator that all ranks of a node reach.
#pragma once

#include "core/context/communicator_context.hpp"
#include "core/fast_path/call_cache.hpp"
#include "core/queue/issue_queue.hpp"

#include <sucl/abi/backend.h>
#include <sucl/export.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace sucl::core {

/// Allocates memory where operations on it need no copies, and registers it with the backends. Owns
/// what it allocated, except memory of device backends. Any thread, without the lock of the queue;
/// its functions are collective.
class SUCL_CORE_API communicator_memory {
 public:
  /// All arguments must outlive this object.
  communicator_memory(communicator_context& c, issue_queue& queue, call_cache& calls)
      : m_context(c), m_queue(queue), m_calls(calls) {}

  // The functions of `communicator` with these names describe them.

  void* allocate(std::uint64_t bytes);
  void deallocate(void* memory, std::uint64_t change);
  bool attach(void* memory, std::uint64_t bytes);
  void detach(void* memory);
  /// Of what allocate() has returned, or attach() was given, the number among those; 0: it is none.
  std::uint64_t number_of_allocated(const void* memory) const;
  /// The same on every rank, or `any_block` if `memory` has been given more than once.
  std::uint64_t number_of_attached(const void* memory) const;
  /// Throws if the operation touches what was deallocated by a later change than `since`.
  void check_not_freed(const sucl_operation& record, std::uint64_t since) const;
  /// Whether an operation that is not done may touch memory of allocate() or attach().
  bool is_in_use(const void* memory) const;
  /// Returns when no operation does that has been issued so far.
  void await_use(const void* memory) const;
  std::byte* common_memory(std::uint64_t bytes);

  /// Gives back what common_memory() made, before the backends end, which have what else is
  /// mapped. With the lock.
  void release();

 private:
  struct block {
    const void* memory;
    std::uint64_t number, bytes;
  };
  using blocks = std::vector<block>;

  blocks::const_iterator allocated_at(const void* memory) const;
  ticket user_of(const void* memory) const;
  void check_room(std::uint64_t bytes) const;
  void* allocate_on_host(std::uint64_t bytes, std::uint64_t number, std::uint64_t sequence);
  void* allocate_plain(std::uint64_t bytes);
  void await_exit(issue_queue::held_lock& lock);

  communicator_context& m_context;
  issue_queue& m_queue;
  call_cache& m_calls;
  // With the lock of the queue.
  std::uint64_t m_allocations = 0, m_attachments = 0;           ///< so far
  blocks m_allocated, m_attached;                               ///< reached by peers or not
  blocks m_freed;                                               ///< by change; the last ones
  std::vector<sucl_region> m_common;                            ///< of common_memory()
  std::vector<std::unique_ptr<void, void (*)(void*)>> m_plain;  ///< allocated, not mapped
  std::vector<const void*> m_shared;                            ///< allocated, mapped
};

}  // namespace sucl::core
