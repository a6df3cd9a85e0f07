// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Memory of programs that all ranks of a communicator reach.
#pragma once

#include "base/sizes.hpp"
#include "core/operation/backend_comm.hpp"

#include <sucl/abi/backend.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sucl::core {

/// Memory that every rank of a communicator reaches.
struct mapped_memory {
  sucl_region region{};
  std::uint64_t number = 0;  ///< the same on every rank, from 1

  /// Whether so many bytes from `p` on lie in this rank's part.
  bool holds(const std::byte* p, std::uint64_t bytes) const {
    return base::lies_within(reinterpret_cast<std::uintptr_t>(p), bytes,
                             reinterpret_cast<std::uintptr_t>(region.base), region.bytes);
  }
};

/// All of it, and which operations may be on some. Owns it: it goes back to its provider. One
/// thread at a time.
class mapped_memories {
 public:
  /// The provider must outlive this object.
  explicit mapped_memories(const backend_comm& provider) : m_provider(provider) {}
  ~mapped_memories();
  mapped_memories(const mapped_memories&) = delete;
  mapped_memories& operator=(const mapped_memories&) = delete;

  /// Takes memory over that operations of a higher sequence number may be on. The same on every
  /// rank.
  void add(const mapped_memory& m, std::uint64_t sequence);
  /// Gives back the memory that begins at `base`; false if there is none. Nothing uses it; after
  /// the last one operations of a higher sequence number are on none.
  bool remove(const void* base, std::uint64_t sequence, mapped_memory& m);

  const std::vector<mapped_memory>& all() const { return m_all; }
  bool never_any() const { return m_times.empty(); }
  /// Whether an operation of this sequence number may be on some. The same on every rank.
  bool any_for(std::uint64_t sequence) const;
  /// Where this process reaches a byte of a rank's memory of this number; null: nowhere.
  std::byte* at(std::uint64_t number, int rank, std::uint64_t offset) const;

 private:
  /// Operations after `since` up to `until` may be on mapped memory.
  struct period {
    std::uint64_t since, until;
  };

  const backend_comm m_provider;
  std::vector<mapped_memory> m_all;
  std::vector<period> m_times;
};

}  // namespace sucl::core
