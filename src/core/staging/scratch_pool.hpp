// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Reused scratch memory.
#pragma once

#include <sucl/export.hpp>

#include <cstddef>
#include <mutex>
#include <vector>

namespace sucl::core {

class scratch_pool;

/// Scratch memory on loan from a pool; given back on destruction.
class scratch {
 public:
  scratch() = default;
  scratch(scratch&& other) noexcept { swap(other); }
  scratch& operator=(scratch&& other) noexcept {
    swap(other);
    return *this;
  }
  ~scratch() { release(); }

  unsigned char* data() const noexcept { return m_memory; }
  explicit operator bool() const noexcept { return m_memory != nullptr; }

  SUCL_CORE_API void release() noexcept;
  /// Keeps the memory from being used again while the pool lives: for memory that an operation
  /// may still read or write though every rank gave up on it.
  SUCL_CORE_API void abandon() noexcept;

 private:
  friend class scratch_pool;
  void swap(scratch& other) noexcept;

  scratch_pool* m_pool = nullptr;
  unsigned char* m_memory = nullptr;
  std::size_t m_capacity = 0;
};

/// Hands out scratch memory and keeps what comes back, so that a size that was used before costs no
/// allocation. Sizes are rounded up by at most an eighth. May be used from several threads; must
/// outlive what it handed out and the backends that were given it.
class SUCL_CORE_API scratch_pool {
 public:
  using allocate_function = void* (*)(void* context, std::size_t bytes);
  using free_function = void (*)(void* context, void* memory);

  /// A pool of ordinary memory, aligned to cache lines.
  scratch_pool();
  /// A pool of memory that the host can read and write, such as memory pinned for a device.
  /// `allocate` returns null where there is none left.
  scratch_pool(void* context, allocate_function allocate, free_function free);
  scratch_pool(const scratch_pool&) = delete;
  scratch_pool& operator=(const scratch_pool&) = delete;
  ~scratch_pool();

  /// At least `bytes` bytes; never null. Throws out_of_memory.
  scratch acquire(std::size_t bytes);
  /// Frees what is not on loan.
  void trim() noexcept;
  /// Blocks allocated and not freed, on loan or not.
  std::size_t blocks() const;

 private:
  friend class scratch;
  struct block {
    unsigned char* memory;
    std::size_t capacity;
  };
  void give_back(block b, bool reuse) noexcept;

  void* m_context;
  allocate_function m_allocate;
  free_function m_deallocate;
  mutable std::mutex m_mutex;
  std::size_t m_blocks = 0;
  std::vector<block> m_unused;     // both have room for every block, so that giving back
  std::vector<block> m_abandoned;  // cannot fail
};

}  // namespace sucl::core
