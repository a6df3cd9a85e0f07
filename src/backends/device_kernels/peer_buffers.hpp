// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// The memory through which kernels of different ranks reach each other.
#pragma once

#include "backends/device_kernels/device.hpp"
#include "core/control/core_services.hpp"
#include "core/operation/backend_comm.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sucl::core {

/// Memory of this rank's device that peers have mapped, and theirs.
struct mapped_piece {
  std::shared_ptr<void> own;
  std::uint64_t bytes = 0;
  std::vector<void*> peers;  ///< one entry a rank, this one's own too; null: out of reach
};

/// Lanes between all ranks of a communicator on one node. A lane lies in memory of its reader's
/// device where the writer can map that, else in host memory that both reach: the pairs are probed
/// one by one. One thread at a time, but for what looks for memory, which any may.
class peer_buffers {
 public:
  /// Collective. Throws sucl::error on every rank if it cannot be had on one, or if the status of
  /// one, of what it has made before, is no success.
  peer_buffers(const backend_comm& memory_provider, const sucl_oob& oob, kernel_device& device,
               int rank, int size, const kernels::lane_shape& shape,
               std::int32_t status = SUCL_SUCCESS);
  ~peer_buffers();
  peer_buffers(const peer_buffers&) = delete;
  peer_buffers& operator=(const peer_buffers&) = delete;

  const kernels::lanes* lanes() const { return static_cast<kernels::lanes*>(m_lanes.get()); }
  /// Of two ranks, the lane to the other one and from it, as the device reaches them.
  std::byte* pair_out() const { return m_pair_out; }
  const std::byte* pair_in() const { return m_pair_in; }
  /// Where the peers' pieces are, in memory of the device.
  const std::byte* const* table() const { return static_cast<std::byte* const*>(m_table.get()); }
  /// A little memory that nobody needs: barriers have none of their own.
  void* spare() const { return m_spare; }
  /// Whether the lanes of all pairs are in memory of devices.
  bool all_on_devices() const { return m_unmapped == 0; }
  /// How the lanes were made, for people.
  std::string description() const;

  /// Allocates memory that all ranks map, after operation `sequence`. Collective. Throws on every
  /// rank.
  void* add(std::uint64_t bytes, std::uint64_t sequence);
  /// The same with memory of the program's, of any size on each rank; whether every rank reaches
  /// that of all others. It stays the program's.
  bool attach(void* memory, std::uint64_t bytes, std::uint64_t sequence);
  /// Collective, with nothing in flight. False if it is of neither.
  bool remove(void* memory);
  /// Whether any was added before an operation: the same on every rank, whenever it gets there.
  bool used_by(std::uint64_t sequence) const;
  /// The key of memory of this rank, 0 if it is in none of the pieces.
  std::uint64_t key_of(const void* memory, std::uint64_t bytes) const;

  /// Where ranks show each other what they have called, by rank.
  std::vector<std::byte*> boards() const;

  /// The memory stays until the process ends: others may be at work on it.
  void abandon() { m_abandoned = true; }

 private:
  mapped_piece map(std::uint64_t bytes, std::int32_t status = SUCL_SUCCESS);
  std::int32_t make_tables(std::int32_t status);
  std::uint64_t lane_of(int reader, int writer) const;
  void share(mapped_piece& piece, std::int32_t status);
  bool add(mapped_piece piece, std::uint64_t sequence, bool keeps);
  void unmap(mapped_piece& piece);
  void make_host_lanes();
  void free_host();
  template <class T>
  std::vector<T> gather(const T& mine);

  backend_comm m_memory_provider;
  sucl_oob m_oob;
  kernel_device& m_device;
  int m_rank, m_size;
  kernels::lane_shape m_shape;
  mapped_piece m_own;
  sucl_region m_host{};
  std::vector<void*> m_pinned;
  std::shared_ptr<void> m_lanes, m_table;
  void* m_spare = nullptr;
  std::byte* m_pair_out = nullptr;
  const std::byte* m_pair_in = nullptr;
  mutable std::mutex m_mutex;  ///< guards what follows
  std::vector<mapped_piece> m_pieces;
  std::optional<std::uint64_t> m_first_use;
  int m_unmapped = 0;  ///< pairs that go through the host's memory
  bool m_abandoned = false;
};

}  // namespace sucl::core
