// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Communicators and memory that random operations run on.
#pragma once

#include "draw.hpp"

#include <sucl/sucl.hpp>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace sucl::torture {

/// Memory of one kind, given out from the start again for each step.
class arena {
 public:
  virtual ~arena() = default;
  /// `bytes` bytes at a multiple of `alignment`, with `guard` bytes around them.
  std::byte* take(std::size_t bytes, std::size_t alignment);
  void reset() { m_used = 0; }

 protected:
  arena(std::byte* data, std::size_t size) : m_data(data), m_size(size) {}
  std::byte* m_data;
  std::size_t m_size, m_used = 0;
};

inline constexpr std::size_t guard = 64;

/// A communicator with what belongs to it.
struct party {
  communicator comm;
  std::optional<blocking_communicator> blocking;
  std::optional<persistent_communicator> persistent;
  membership self;
  std::optional<::sycl::queue> queue;
  std::unique_ptr<arena> symmetric;
  explicit operator bool() const { return static_cast<bool>(comm); }
};

class pool {
 public:
  /// Collective.
  explicit pool(runtime& rt);

  party& of(group_of g) { return m_parties[static_cast<std::size_t>(g)]; }
  int rank() const { return m_rank; }
  int size() const { return m_size; }
  ::sycl::queue& queue() { return m_queue; }
  /// Whether the queues are of a GPU: where there is any, each rank has one.
  bool on_gpu() const { return m_queue.get_device().is_gpu(); }

  /// Memory of this kind, which is none of buffers.
  arena& memory_of(memory m, party& p);
  /// Everything may be given out again.
  void reset();
  /// Memory of the communicator's allocate(), of `bytes` bytes on this rank. Collective; so is its
  /// end.
  static std::unique_ptr<arena> allocate(party& p, std::size_t bytes);

  /// A communicator made anew of the one of the pool: by dup(), or by split() into the same ranks.
  /// Collective over those of the old one.
  party renew(group_of g, bool split);

  bool messages_in_order = false;  ///< the backend takes them one after the other
  std::unique_ptr<arena> spare;    ///< while another one belongs to the communicator

 private:
  party make(communicator comm, group_of g, std::optional<::sycl::queue> queue);
  int m_rank, m_size;
  ::sycl::queue m_queue, m_in_order;
  std::array<party, static_cast<std::size_t>(group_of::count)> m_parties;
  std::map<memory, std::unique_ptr<arena>> m_arenas;
};

}  // namespace sucl::torture
